//! A new process takes over from a gateway while packets flow.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

use super::operator::{is_root, well};
use super::*;

/// What `script` (bash) does with a gateway of its own program between two hosts (`upgrade.sh`), and where.
fn replaced(options: &str, script: &str) -> (Output, PathBuf) {
    let folder = scratch("upgrade");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
    let script = format!(". ./upgrade.sh\n{script}");
    let mut unshare = Command::new("unshare");
    unshare.arg(if is_root() { "-n" } else { "-rn" });
    unshare.args(["bash", "-c", &script, "bash", folder.to_str().unwrap(), GATEWAY]);
    unshare.args(options.split(' ')).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"));
    (unshare.output().unwrap(), folder)
}

/// Three flows each way, of `load` datagrams a second, over four upgrades. Returns how many were sent and came
/// each way, and what all gateways counted as dropped.
fn carried(options: &str, bytes_per_second: f64, load: u32) -> [[u64; 3]; 2] {
    let script = format!(
        "at() {{ nsenter -t $1 -n python3 numbered.py $2 {load} 2.5 $at/$3 $at/$4 > $at/$5.json; }}
         at $left 10.9.0.2 l r down & one=$!
         at $right 10.9.0.1 r l up & other=$!
         until [ -e $at/l ] && [ -e $at/r ]; do sleep 0.05; done; sleep 0.3
         for i in 1 2 3 4; do until upgrade 2>&-; do sleep 0.05; done; done
         wait $one $other; settled; end"
    );
    let (output, folder) = replaced(options, &script);
    let (text, errors) = well(&output);
    assert_eq!(text.matches("takes over from process").count(), 4, "{text}");
    let read = |way: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.join(format!("{way}.json"))).unwrap()).unwrap()
    };
    let results = ["up", "down"].map(read);
    let log = fs::read_to_string(folder.join("log")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    [0, 1].map(|way| {
        let (receiver, sender) = (&results[way], &results[1 - way]);
        let came: Vec<(u64, u64, f64)> = serde_json::from_value(receiver["came"].clone()).unwrap();
        for flow in 0..3 {
            let numbers = came.iter().filter(|one| one.0 == flow).map(|one| one.1);
            assert!(numbers.is_sorted_by(|one, next| one < next), "{flow}: twice or overtaken");
        }
        // Whatever came late: no more left than the rate allows from the first packet on.
        let time = came.last().unwrap().2 - sender["first"].as_f64().unwrap();
        let bytes = 514.0 * came.len() as f64;
        assert!(bytes <= bytes_per_second * time + 2.0 * 514.0, "{bytes} bytes in {time} s");
        // All of them are in the log, whichever process sent them.
        let sent = lines.iter().filter(|line| line["queue"] == ["up", "down"][way]);
        let sent: u64 = sent.map(|line| line["departures"].as_u64().unwrap()).sum();
        assert_eq!(sent, came.len() as u64, "{log}");
        let summaries = errors.lines().filter(|line| line.starts_with(["up", "down"][way]));
        let dropped = summaries.map(|line| {
            let before = line.split(" dropped").next().unwrap();
            before.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
        });
        [sender["sent"].as_u64().unwrap(), came.len() as u64, dropped.sum()]
    })
}

/// Less than the rate: nothing is lost, be it in the queues or on the wire meanwhile.
#[test]
fn an_upgrade_loses_nothing() {
    if !interfaces_allowed() {
        return;
    }
    for [sent, came, dropped] in carried("--rate 8mbit --delay 30ms --buffer 5000p", 1e6, 800) {
        assert_eq!((came, dropped), (sent, 0));
    }
}

/// More than the rate, so that the queues are never empty: what is missing was dropped by a discipline.
#[test]
fn an_upgrade_under_overload_loses_what_the_disciplines_drop() {
    if !interfaces_allowed() {
        return;
    }
    for [sent, came, dropped] in carried("--rate 4mbit --delay 5ms --buffer 50kB", 0.5e6, 1500) {
        assert!(dropped > 0);
        assert_eq!(came + dropped, sent);
    }
}

/// Whatever is wrong with the new one, with who asks or with what is to be handed over: the old one goes on.
#[test]
fn an_upgrade_that_cannot_be_leaves_the_old_one() {
    if !interfaces_allowed() {
        return;
    }
    let script = "
        same() { [ \"$(field pid)\" = $run ] || exit 30; }
        mv $g $g.good
        echo nonsense > $g; chmod 755 $g; $g.good ctl $name upgrade && exit 11
        printf '#!/bin/sh\\nexit 3\\n' > $g; $g.good ctl $name upgrade && exit 12
        rm $g; $g.good ctl $name upgrade && exit 13
        cp $g.good $g; chmod 777 $g; upgrade && exit 14
        chmod 755 $g; same
        STRANGER
        ip link set lan down; until ip link show wan | grep -q 'state DOWN'; do sleep 0.05; done
        upgrade && exit 16
        ip link set lan up; until [ $(ip link show wan | grep -c 'state UP') = 1 ]; do sleep 0.05; done
        same
        $g ctl $name set --policer 5mbit >&-; upgrade && exit 17
        $g ctl $name set --policer none --rate 50kbit --delay 300ms >&- && same
        burst 60; upgrade || exit 18
        upgrade && exit 19
        $g ctl $name set --delay 100ms >&- || exit 20
        new=$(field pid); [ $new != $run ] || exit 21
        kill -INT $run; settled
        [ $(field rate | head -n 1) = '\"50kbit\"' ] || exit 22
        end; wait $run
        gateway --rate 1mbit --record $at/arrivals; upgrade && exit 23
        end; wait $run
        echo 'rate = \"1mbit\"' > $at/options; gateway --config $at/options; upgrade || exit 24
        settled; echo 'delay = \"1ms\"' >> $at/options; upgrade && exit 28
        echo 'metrics = 0' >> $at/options; upgrade && exit 25
        $g shell --rate 1mbit --quiet -- sh -c \"$g ctl \\$BLUEWATER_NAME upgrade\" && exit 26
        for child in $(pgrep -P $(field pid)); do grep -q bound-keep /proc/$child/cmdline && kill -9 $child; done
        upgrade && exit 27
        end";
    let stranger = "chmod 755 $at
        setpriv --reuid 4711 --clear-groups env XDG_RUNTIME_DIR=$at $g ctl $name upgrade && exit 15
        chmod 700 $at";
    let script = script.replace("STRANGER", if is_root() { stranger } else { "" });
    let (output, _) = replaced("--rate 1mbit", &script);
    let (_, errors) = well(&output);
    for words in [
        "goes on as it is: ",
        "Exec format error",
        "the new program ended before it was ready",
        "No such file or directory",
        "has mode 777: whoever may write there would get the rights of user 0",
        "this is no gateway between two interfaces",
        "bound-keep has ended",
        "is down",
        "a new policer or shaper would let its burst pass again",
        "still sends what came before the last upgrade",
        "--record and --pcapng write files that no other process continues",
        "the file has changed, and the links have not",
        "needs another start",
    ] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
}

/// A program says that it is ready and does not read, be it that it ends or hangs: on an idle link, too, the old one
/// goes on.
#[test]
fn a_program_that_does_not_read_leaves_the_old_one() {
    if !interfaces_allowed() {
        return;
    }
    let script = "
        mv $g $g.good
        for then in 'exit 1' 'exec sleep 99'; do
            printf '#!/bin/sh\\necho \"{\\\\\"ready\\\\\": true}\" >&0\\n%s\\n' \"$then\" > $g; chmod 755 $g
            before=${EPOCHREALTIME/./}; $g.good ctl $name upgrade && exit 11
            [ $((${EPOCHREALTIME/./} - before)) -lt 6000000 ] || exit 16
            kill -0 $run || exit 12
            while pgrep -P $(pgrep -d , -P $run) >&-; do sleep 0.05; done
        done
        rm $g; cp $g.good $g; flows 13; [ \"$(field pid)\" = $run ] || exit 14
        upgrade && settled && flows 15; end";
    let (_, errors) = well(&replaced("--rate 10mbit", script).0);
    for words in ["has ended before it read a packet", "did not read within 1 s"] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
}

/// Either process is killed while both are there: the other one goes on, and says so.
#[test]
fn of_two_that_hand_over_either_may_be_killed() {
    if !interfaces_allowed() {
        return;
    }
    let script = "
        burst 60; upgrade || exit 11
        new=$(field pid); kill -9 $new
        until [ \"$(field pid)\" = $run ]; do sleep 0.05; done
        $g ctl $name show | grep -o 'has ended, with[^\"]*'; $g ctl $name set --rate 10mbit >&- || exit 12
        flows 13
        $g ctl $name set --rate 20kbit >&-; burst 60; upgrade || exit 14
        kill -9 $run; wait $run; settled
        $g ctl $name set --rate 10mbit >&- || exit 15
        flows 16
        upgrade && settled && flows 17; end";
    let (text, errors) = well(&replaced("--rate 20kbit", script).0);
    assert!(text.contains("has ended, with what it had queued"), "{text}");
    assert!(errors.contains("no upgrade, this process goes on"), "{errors}");
    assert!(errors.contains("has ended, with what it had queued"), "{errors}");
}

/// A manager of services follows from one process to the other.
#[test]
fn a_manager_of_services_learns_of_the_new_process() {
    if !interfaces_allowed() {
        return;
    }
    let folder = scratch("manager");
    fs::create_dir(&folder).unwrap();
    let manager = UnixDatagram::bind(folder.join("notify")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let script = format!(
        "end; wait $run; export NOTIFY_SOCKET={}/notify; gateway --rate 1mbit --metrics 9100
         upgrade; settled; field pid
         exec 3<>/dev/tcp/127.0.0.1/9100; printf 'GET /health HTTP/1.1\\r\\n\\r\\n' >&3
         head -n 1 <&3 | grep -q '200 OK' || exit 11
         end",
        folder.display()
    );
    let (text, _) = well(&replaced("--rate 1mbit", &script).0);
    let pid = text.lines().last().unwrap();
    let mut heard = Vec::new();
    while heard.last().is_none_or(|last| last != "STOPPING=1") {
        let mut text = [0; 256];
        let length = manager.recv(&mut text).unwrap();
        heard.push(String::from_utf8_lossy(&text[..length]).into_owned());
    }
    heard.retain(|what| what != "WATCHDOG=1");
    let ready = "READY=1\nSTATUS=up 1mbit droptail, down 1mbit droptail";
    assert_eq!(heard, [ready, &format!("MAINPID={pid}"), ready, "STOPPING=1"]);
}
