//! What an operator and an attacker do to a gateway between two interfaces: it answers, it refuses,
//! and its packets go on.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::os::unix::net::UnixListener;

use super::*;

/// Runs `script` (bash) beside a gateway between `lan` and `wan`, whose other ends are `x` and `y`,
/// once it answers. `$g` is the program, `$run` the gateway's process, `$name` what it is called. Its
/// exit code is the script's unless that goes well. `more` adds `other` and `another` for a second gateway;
/// `elsewhere MODE` goes to a new folder that others may enter, with a copy of the program.
pub(super) fn operated(options: &str, script: &str) -> Output {
    let name = scratch("operated");
    let name = name.file_name().unwrap().to_str().unwrap().replace('.', "-");
    let script = format!(
        "g={GATEWAY} name=$1
         ip link set lo up
         ip link add lan type veth peer name x; ip link add wan type veth peer name y
         for i in lan wan x y; do ip link set $i up; done
         $g run --rate 1mbit --lan lan --wan wan --name $name {options} & run=$!
         trap 'kill $run 2>&-' EXIT
         answers() {{ while kill -0 $run 2>&-; do $g ctl $name show >&- 2>&- && break; sleep 0.05; done; }}
         answers
         end() {{ kill -INT $run; wait $run; }}
         more() {{
             ip link add other type veth peer name o; ip link add another type veth peer name p
             for i in other another o p; do ip link set $i up; done
         }}
         elsewhere() {{
             export TMPDIR=$(mktemp -d); chmod $1 $TMPDIR; unset XDG_RUNTIME_DIR
             cp $g $TMPDIR/gateway; chmod 755 $TMPDIR/gateway; cd $TMPDIR
         }}
         {script}"
    );
    // Root of the machine has rights to give up.
    let rights = if is_root() { "-n" } else { "-rn" };
    Command::new("unshare").args([rights, "bash", "-c", &script, "bash", &name]).output().unwrap()
}

pub(super) fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[track_caller]
pub(super) fn well(output: &Output) -> (String, String) {
    let [text, errors] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{:?}\n{text}\n{errors}", output.status);
    (text, errors)
}

/// A question, a change, a scrape: none is taken for the end, which a signal is.
#[test]
fn questions_do_not_end_a_gateway() {
    if !interfaces_allowed() {
        return;
    }
    let script = "
        scrape() {
            exec 3<>/dev/tcp/127.0.0.1/9100
            printf 'GET /metrics HTTP/1.1\\r\\n\\r\\n' >&3
            grep -q '^# EOF' <&3
        }
        for i in 1 2 3; do
            $g ctl $name show >&- || exit 11
            scrape || exit 12
            $g ctl $name set --rate ${i}mbit >&- || exit 13
        done
        sleep 0.2; kill -0 $run || exit 14
        kill -TERM $run; wait $run";
    let (_, errors) = well(&operated("--metrics 9100", script));
    assert!(errors.contains("up   3mbit"), "a summary at the end: {errors}");
}

/// Whatever the signal, but for a fault.
#[test]
fn each_signal_that_ends_a_gateway_leaves_a_summary() {
    if !interfaces_allowed() {
        return;
    }
    for signal in ["INT", "QUIT", "TERM", "ALRM", "VTALRM", "PROF", "IO", "XCPU", "PWR", "STKFLT"] {
        let (_, errors) = well(&operated("", &format!("kill -{signal} $run; wait $run")));
        assert!(errors.contains("up   1mbit"), "SIG{signal}: a summary at the end: {errors}");
    }
}

/// Those that ask daemons for something do not end the link.
#[test]
fn a_signal_that_asks_for_something_does_not_end_a_gateway() {
    if !interfaces_allowed() {
        return;
    }
    let script = "for signal in USR1 USR2 HUP HUP; do kill -$signal $run; sleep 0.2; done
        $g ctl $name show >&- || exit 11
        end";
    let (_, errors) = well(&operated("", script));
    assert!(errors.contains("SIGHUP: nothing is otherwise"), "{errors}");
    assert!(errors.contains("up   1mbit"), "a summary at the end: {errors}");
}

/// Whoever rotates logs renames them and says SIGHUP: what follows is in new files that begin as the first
/// ones. A configuration that has changed holds from then on, and one that has not leaves what was set; one that
/// is wrong changes nothing, nor does what would need another start.
#[test]
fn files_and_configuration_are_renewed() {
    if !interfaces_allowed() {
        return;
    }
    let folder = scratch("renewed");
    fs::create_dir(&folder).unwrap();
    let at = folder.display();
    let script = format!(
        "end
        write() {{ printf 'lan = \"lan\"\nwan = \"wan\"\ndelay = \"5ms\"\nbuffer = \"1bdp\"\n%s\n' \"$1\" > {at}/run.toml; }}
        write 'rate = \"8mbit\"'
        $g run --config {at}/run.toml --name $name --log {at}/log --pcapng {at}/pcapng --interval 50ms & run=$!
        answers
        sleep 0.3; mv {at}/log {at}/log.1; mv {at}/pcapng {at}/pcapng.1
        kill -HUP $run; sleep 1
        test -s {at}/log && test -s {at}/pcapng || exit 11
        write 'rate = \"20mbit\"'; kill -HUP $run; sleep 0.7; $g ctl $name show
        $g ctl $name set --way up --rate 3mbit >&-; kill -HUP $run; sleep 0.7; $g ctl $name show
        write 'rate = \"20mbit\"
down-rate = \"7mbit\"'; kill -HUP $run; sleep 0.7; $g ctl $name show
        write 'rate = \"20mbit\"'; kill -HUP $run; sleep 0.7; $g ctl $name show
        $g ctl $name set --rate 20mbit >&-
        write 'rate = \"9mbut\"'; mv {at}/log {at}/log.2; kill -HUP $run; sleep 0.7; $g ctl $name show
        test -s {at}/log || exit 12
        write 'rate = \"20mbit\"
aqm = \"red\"
param = {{ min_th = \"9p\", max_th = \"8p\" }}'
        for again in 1 2; do kill -HUP $run; sleep 0.7; $g ctl $name show; done
        write 'rate = \"20mbit\"
metrics = 0'; kill -HUP $run; sleep 0.7; $g ctl $name show
        end"
    );
    let (text, errors) = well(&operated("--quiet", &script));
    let shown: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rates =
        shown.iter().map(|state| [0, 1].map(|way| state["queues"][way]["rate"].as_str().unwrap()));
    let new = ["20mbit", "20mbit"];
    let set = ["3mbit", "20mbit"];
    assert_eq!(rates.collect::<Vec<_>>(), [new, set, ["3mbit", "7mbit"], set, new, new, new, new]);
    assert!(shown.iter().all(|state| state["queues"][0]["aqm"] == "droptail"));
    assert_eq!(shown[0]["queues"][0]["buffer"], "25000B");
    for words in [
        "SIGHUP: log goes on in ",
        "capture goes on in ",
        "up is 20mbit 5ms droptail now, down is 20mbit 5ms droptail now",
        "up stays 3mbit 5ms droptail, as `ctl set` made it",
        "SIGHUP: down is 7mbit 5ms droptail now, up stays 3mbit 5ms droptail",
        "run.toml:5: rate = \"9mbut\": ",
        "needs another start",
    ] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
    let wrong = format!("SIGHUP: with {at}/run.toml: red: max_th = 8p: allowed: min_th or more");
    assert_eq!(errors.matches(&wrong).count(), 2, "each time: {errors}");
    let lines = |name: &str| -> Vec<Value> {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (first, second) = (lines("log.1"), [lines("log.2"), lines("log")].concat());
    assert_eq!(
        (&first[0]["log"], &second[0]["log"]),
        (&"bluewater-gateway".into(), &"bluewater-gateway".into())
    );
    assert!(first.len() > 3 && second.last().unwrap()["summary"].is_array());
    let time = |line: &Value| line["time_s"].as_f64().unwrap();
    assert!(time(first.last().unwrap()) <= time(&second[0]));
    for line in first.iter().chain(&second) {
        let at = line["at"].as_str().unwrap();
        assert!(at.starts_with("20") && at.ends_with('Z') && at.len() == 24, "{line}");
    }
    for name in ["log.1", "log", "pcapng.1", "pcapng"] {
        let about = fs::metadata(folder.join(name)).unwrap();
        assert_eq!(about.mode() & 0o777, 0o600, "{name}");
        let section = fs::read(folder.join(name)).unwrap();
        assert!(!name.starts_with("pcapng") || section.starts_with(&[10, 13, 13, 10]), "{name}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// What is lost before it can be read is said while the link runs, and in the log.
#[test]
fn a_gateway_that_is_too_slow_says_so() {
    if !interfaces_allowed() {
        return;
    }
    let log = scratch("log");
    let flood = "kill -STOP $run
        python3 -c '
import socket
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind((\"x\", 0))
for _ in range(20000):
    raw.send(bytes(12) + bytes([0x88, 0xb5]) + bytes(46))
'
        kill -CONT $run; sleep 1.2; $g ctl $name show; end";
    let options = format!("--quiet --log {}", log.display());
    let (text, errors) = well(&operated(&options, flood));
    let state: Value = serde_json::from_str(&text).unwrap();
    let lost = state["queues"][0]["lost_before"].as_u64().unwrap();
    assert!((10_000..20_000).contains(&lost), "{state}");
    assert!(state["ceiling_pps"].as_f64().unwrap() > 1000.0, "{state}");
    let said = format!("warning: {lost} packets up and 0 down were lost before");
    assert!(errors.contains(&said), "{errors}");
    let (lines, _) = read(&log);
    let alarm = lines.iter().find(|line| line["alarm"] == "lost_before").unwrap();
    assert_eq!(alarm["lost_before"], serde_json::json!([lost, 0]));
}

/// Root asks a gateway of a service's user, if it says so; others do not, and nobody stands in for it.
#[test]
fn root_asks_the_gateway_of_a_service() {
    if !interfaces_allowed() {
        return;
    }
    if !is_root() {
        return skipped("only root of the machine becomes another user");
    }
    let script = "more; elsewhere 1777
        as() { echo setpriv --reuid $1 --regid $1 --clear-groups \
            --inh-caps=-all,+net_raw,+net_admin --ambient-caps=-all,+net_raw,+net_admin \
            --bounding-set=-all,+net_raw,+net_admin $TMPDIR/gateway; }
        $(as 4711) run --rate 1mbit --lan other --wan another --plane packet --name svc & service=$!
        for i in $(seq 100); do $g ctl --user 4711 svc show >&- 2>&- && break; sleep 0.05; done
        $g ctl --user 4711 svc set --rate 3mbit || exit 11
        $g ctl svc show && exit 12
        $g ctl --user 4712 svc show && exit 13
        $(as 4712) ctl --user 4711 svc show && exit 14
        stat -c 'owner %u' /proc/$service/environ
        kill -INT $service; wait $service; rm -r $TMPDIR; end";
    let (text, errors) = well(&operated("--quiet", script));
    assert!(text.contains("\"rate\":\"3mbit\""), "{text}");
    assert!(errors.contains("of another user's: --user"), "{errors}");
    // Nobody but root looks into it, whatever rights it began with.
    assert!(text.contains("owner 0\n"), "{text}");
}

/// Members of a group that may only look show and save, and change nothing; its user and root change all, and
/// strangers do not get in.
#[test]
fn a_group_may_look_and_change_nothing() {
    if !interfaces_allowed() {
        return;
    }
    if !is_root() {
        return skipped("only root of the machine becomes a member of a group");
    }
    let script = "more; elsewhere 755
        as() { setpriv --reuid 4711 --regid $1 --clear-groups $TMPDIR/gateway ctl --user root look $2; }
        $g run --group-may show --rate 1mbit --lan other --wan another && exit 10
        $g run --group 4712 --group-may show --rate 1mbit --lan other --wan another --name look & look=$!
        for i in $(seq 100); do $g ctl look show >&- 2>&- && break; sleep 0.05; done
        as 4712 show || exit 11
        as 4712 save >&- || exit 12
        as 4712 'set --rate 3mbit' && exit 13
        as 4712 upgrade && exit 14
        as 4713 show && exit 15
        $g ctl look set --rate 2mbit || exit 16
        kill -INT $look; wait $look; rm -r $TMPDIR; end";
    let (text, errors) = well(&operated("--quiet", script));
    let told: Vec<_> = text.lines().map(|line| line.contains("\"rate\":\"1mbit\"")).collect();
    assert_eq!(told[..2], [true, false], "{text}");
    let refused = "members of the group may show and save, and change nothing";
    assert_eq!(errors.matches(refused).count(), 2, "{errors}");
    assert!(errors.contains("--group <GROUP>"), "{errors}");
}

/// One that cannot be started leaves what runs under its name alone, and nothing of its own.
#[test]
fn a_name_is_not_taken_from_who_has_it() {
    if !interfaces_allowed() {
        return;
    }
    let script = "
        export XDG_RUNTIME_DIR=$(mktemp -d)
        $g run --rate 1mbit --lan other --wan another --name two & two=$!
        for i in $(seq 100); do $g ctl two show >&- 2>&- && break; sleep 0.05; done
        for files in $(seq 12 40); do
            (ulimit -n $files; $g shell --rate 1mbit --name two -- true) >&- 2>&- && exit 11
            $g ctl two show >&- || exit 12
            (ulimit -n $files; $g shell --rate 1mbit --name new -- true) >&- 2>&-
            test -e $XDG_RUNTIME_DIR/bluewater/new.sock && sleep 0.5
            test -e $XDG_RUNTIME_DIR/bluewater/new.sock && exit 13
        done
        kill $two; wait $two; rm -r $XDG_RUNTIME_DIR; end";
    let script = format!("more; {script}");
    well(&operated("--quiet", &script));
}

/// What it reads is not what it writes.
#[test]
fn inputs_are_not_overwritten() {
    let folder = scratch("inputs");
    fs::create_dir(&folder).unwrap();
    let trace = folder.join("trace.csv");
    let rates = "time_s,rate_mbps\n0,1\n1,1\n";
    fs::write(&trace, rates).unwrap();
    std::os::unix::fs::symlink(&trace, folder.join("link")).unwrap();
    let config = folder.join("run.toml");
    let options = "rate = \"1mbit\"\nlan = \"a\"\nwan = \"b\"\n";
    fs::write(&config, options).unwrap();
    let (folder_name, trace_name) = (folder.display(), trace.display());
    for (arguments, input, text) in [
        (
            format!(
                "--lan a --wan b --rate 1mbit --rate-trace {trace_name} --log {folder_name}/link"
            ),
            &trace,
            rates,
        ),
        (format!("--config {0} --record {0}", config.display()), &config, options),
    ] {
        let output = gateway(&format!("run {arguments}"), &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("it is read, and cannot be written"), "{errors}");
        assert_eq!(fs::read_to_string(input).unwrap(), text);
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// A byte now and then does not keep the door to oneself.
#[test]
fn a_client_that_drips_is_cut_off() {
    if !interfaces_allowed() {
        return;
    }
    let script = "
        socket=$XDG_RUNTIME_DIR/bluewater/$name.sock
        python3 -c '
import socket, sys, time
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
for _ in range(40):
    client.send(b\" \")
    time.sleep(0.2)
' $socket 2>&- & sleep 0.5
        $g ctl $name show >&- || exit 11
        end";
    let runtime = scratch("drips");
    fs::create_dir(&runtime).unwrap();
    fs::set_permissions(&runtime, PermissionsExt::from_mode(0o700)).unwrap();
    let script = format!("export XDG_RUNTIME_DIR={}; {script}", runtime.display());
    let begin = "kill $run; wait $run; $g run --rate 1mbit --quiet --lan lan --wan wan --name $name & run=$!
        answers";
    let (first, rest) = script.split_once(';').unwrap();
    well(&operated("--quiet", &format!("{first}; {begin}\n{rest}")));
    fs::remove_dir_all(&runtime).unwrap();
}

/// What was asked for is shown, in the same words, and nothing asked for is an error.
#[test]
fn settings_are_shown_as_they_were_given() {
    if !interfaces_allowed() {
        return;
    }
    let script = "
        $g ctl $name show || exit 11
        $g ctl $name set --way up --overhead 'overhead 40 mpu 64 atm' || exit 12
        $g ctl $name set; test $? = 2 || exit 13
        $g ctl $name set --way down; test $? = 2 || exit 14
        $g ctl $name show || exit 15
        end";
    let (text, errors) =
        well(&operated("--overhead 44 --down-overhead pppoe-ptm --down-mpu 70", script));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let framing = |line: usize, way: usize| lines[line]["queues"][way]["framing"].clone();
    assert_eq!(
        [framing(0, 0), framing(0, 1)],
        ["overhead 44 mpu 0 noatm", "overhead 30 mpu 70 ptm"]
    );
    assert_eq!(framing(lines.len() - 1, 0), "overhead 40 mpu 64 atm");
    assert_eq!(errors.matches("nothing is to change").count(), 2, "{errors}");
}

/// Neither a full disk, nor a closed pipe, nor a reader that stalls: the link goes on, and what is
/// lost is said in the answer to `show` and at the end.
#[test]
fn what_cannot_be_written_costs_records_only() {
    if !interfaces_allowed() {
        return;
    }
    let fifo = scratch("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Open at both ends, so that it is never read and never without a reader.
    let stalled = fs::File::options().read(true).write(true).open(&fifo).unwrap();
    let options = format!("--buffer 30kB --record /dev/full --pcapng {}", fifo.display());
    let (lines, [up, _]) = between_interfaces("bridge.sh", "packet", &options);
    drop(stalled);
    _ = fs::remove_file(&fifo);
    assert!(up["departures"].as_u64().unwrap() > 1000, "{up}");
    assert_eq!((&up["conserved"], &up["lost_before"]), (&true.into(), &0.into()), "{up}");
    assert!(lines.len() >= 9, "a line a second: {}", lines.len());

    // A closed pipe for standard output and standard error, and a log that nobody takes.
    let script = "sleep 1.2; $g ctl $name show; end";
    let (text, errors) = well(&operated("--log /dev/full --interval 100ms", script));
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert!(shown["lost_records"]["log"].as_u64().unwrap() > 5, "{shown}");
    assert!(errors.contains("log: ") && errors.contains("No space left"), "{errors}");
    // Redirected by what `operated` puts behind the options.
    let closed = "--log /dev/stdout --interval 1ms > >(exec sleep 0) 2>&1";
    let (_, errors) = well(&operated(closed, "sleep 0.5; kill -0 $run || exit 11; end"));
    assert_eq!(errors, "", "there is nobody to tell");
}

/// Killed as it goes, its recording and its log are there to a fraction of a second, and replay.
#[test]
fn a_recording_survives_a_kill_and_a_full_disk() {
    if !interfaces_allowed() {
        return;
    }
    let (log, file) = (scratch("log"), scratch("run.arr"));
    let options = format!("--rate 8mbit --buffer 30kB --aqm red --record {}", file.display());
    let mut arguments = vec!["killed.sh", GATEWAY, log.to_str().unwrap()];
    arguments.extend(options.split_whitespace());
    well(&in_namespace("packet", &arguments));
    let (text, errors) = well(&gateway(&format!("replay {}", file.display()), &[]));
    assert!(errors.contains("the recording breaks off after"), "{errors}");
    let up: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    // 1 s of sending at 8 Mb/s on a busy machine.
    assert!(up["arrivals"].as_u64().unwrap() > 150, "{up}");
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count() % 2, 1, "whole lines");

    let disk = scratch("disk");
    fs::create_dir(&disk).unwrap();
    let options = format!("--rate 80mbit --record {0}/run.arr --interval 10ms", disk.display());
    let mut arguments = vec!["-rnm", "sh", "full.sh", GATEWAY, log.to_str().unwrap()];
    arguments.extend(options.split_whitespace());
    let mut unshare = Command::new("unshare");
    unshare.args(arguments).env("DISK", &disk);
    unshare.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"));
    let (_, errors) = well(&unshare.output().unwrap());
    assert!(errors.contains("recording: ") && errors.contains("No space left"), "{errors}");
    let (_, [up, _]) = read(&log);
    let all = up["arrivals"].as_u64().unwrap();
    let copy = PathBuf::from(format!("{}.copy", disk.display()));
    let (_, errors) = well(&gateway(&format!("replay {}", copy.display()), &[]));
    let words = "the recording breaks off after ";
    let cut: u64 = errors.split(words).nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    // About nine bytes each, in 64 kB.
    assert!((4_000..12_000).contains(&cut) && cut < 2 * all, "{errors}");
    _ = [fs::remove_dir(&disk), fs::remove_file(&copy), fs::remove_file(&file)];
}

/// Wiring by which frames would go past the link, or in circles.
#[test]
fn bad_wiring_is_refused_or_said() {
    if !interfaces_allowed() {
        return;
    }
    let again = "$g run --rate 1mbit --quiet --lan wan --wan y; code=$?; end; exit $code";
    let output = operated("--quiet", again);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    // Of the second one the cable is seen before the first gateway.
    assert!(errors.contains("two ends of one cable"), "{errors}");
    let again = "ip link add other type veth peer name z; ip link set other up; ip link set z up
        $g run --rate 1mbit --quiet --lan other --wan lan; code=$?; end; exit $code";
    let output = operated("--quiet", again);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("another gateway (process"), "{errors}");

    // While it runs it is said, and it goes on.
    let enslave = "ip link add br0 type bridge; ip link set lan master br0; sleep 1.5; end";
    let (_, errors) = well(&operated("--quiet", enslave));
    assert!(errors.contains("warning: lan is a port of br0"), "{errors}");
    let longer = "ip link set wan mtu 1400; sleep 1; ip link set wan mtu 1600; sleep 1.5; end";
    let (_, errors) = well(&operated("--quiet", longer));
    let said = "warning: wan has an MTU of 1600 now: of its packets, those longer than 1500 bytes";
    assert!(errors.contains(said), "{errors}");
    assert_eq!(errors.matches("of its packets, those longer").count(), 1, "{errors}");

    let shorter = "ip link set wan mtu 1400; sleep 1; end";
    let (_, errors) = well(&operated("--quiet", shorter));
    assert!(errors.contains("warning: wan has an MTU of 1400 now: longer packets"), "{errors}");

    let begin = "ip link add lan type veth peer name x; ip link add wan type veth peer name y
        for i in lan wan x y; do ip link set $i up; done";
    for (wiring, names, words) in [
        (
            "ip link add br0 type bridge && ip link set lan master br0",
            "lan wan",
            "is a port of br0",
        ),
        (
            "ip tuntap add t0 mode tun && ip link set t0 up",
            "t0 wan",
            "t0 is no Ethernet interface, but a tun",
        ),
        ("ip link property add dev lan altname other", "lan other", "are the same interface"),
        (
            "ip link add br0 type bridge && ip link set x master br0 && ip link set y master br0",
            "lan wan",
            "lan and wan lead to the same bridge, br0",
        ),
        (
            "ip link add br0 type bridge && ip link set x master br0 && ip link set br0 up",
            "lan br0",
            "lan and br0 lead to the same bridge, br0",
        ),
        (
            "ip link add br0 type bridge vlan_filtering 1 && for i in x y; do ip link set $i master br0
             done; ip addr add 10.1.2.3/24 dev lan",
            "lan wan",
            "lan has the address 10.1.2.3",
        ),
        (
            "for i in lan wan; do ip link set $i mtu 65535; done",
            "lan wan",
            "an MTU of 65535: frames of more than 65535 bytes",
        ),
        ("ip addr add 10.1.2.3/24 dev wan", "lan wan", "wan has the address 10.1.2.3"),
        ("ip addr add fd77::1/64 dev lan nodad", "lan wan", "lan has the address fd77::1"),
    ] {
        let (lan, wan) = names.split_once(' ').unwrap();
        let script = format!(
            "{begin}
             {wiring} || exit 77
             timeout -s INT 1 {GATEWAY} run --rate 1mbit --lan {lan} --wan {wan} --quiet"
        );
        let output = in_namespace("packet", &["-c", &script]);
        let errors = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(77) {
            _ = writeln!(std::io::stderr(), "SKIPPED: {wiring}: {errors}");
            continue;
        }
        assert!(errors.contains(words), "{wiring}: {errors}");
        let refused = !words.contains("address");
        assert_eq!(output.status.code() == Some(2), refused, "{wiring}: {errors}");
    }
}

/// Whoever is logged in over a port would be cut off, without a way to end the gateway.
#[test]
fn a_port_that_carries_a_connection_of_this_machine_is_refused() {
    if !interfaces_allowed() {
        return;
    }
    let script = format!(
        "ip link set lo up; ip link add lan type veth peer name x; ip link add wan type veth peer name y
         unshare -n sleep 60 >/dev/null 2>&1 & other=$!; trap 'kill $other $server 2>&-' EXIT; sleep 0.5
         ip link set x netns $other
         for i in lan wan y; do ip link set $i up; done; ip addr add 10.1.2.3/24 dev lan
         nsenter -t $other -n sh -c 'ip addr add 10.1.2.4/24 dev x; ip link set x up'
         nsenter -t $other -n python3 -c 'import socket
server = socket.create_server((\"10.1.2.4\", 22)); peer = server.accept(); peer[0].recv(1)' >/dev/null 2>&1 & server=$!
         n=0; until {{ exec 3<>/dev/tcp/10.1.2.4/22; }} 2>/dev/null; do sleep 0.1; (( ++n < 200 )) || exit 11; done
         run() {{ timeout -s INT 1 {GATEWAY} run --rate 1mbit --lan lan --wan wan --quiet $1 3>&-; }}
         run; test $? = 2 || exit 12
         run --open-host; test $? = 2 && exit 13
         exit 0"
    );
    let rights = if is_root() { "-n" } else { "-rn" };
    let run = Command::new("unshare").args([rights, "bash", "-c", &script]).output().unwrap();
    let (_, errors) = well(&run);
    let told = "lan has the address 10.1.2.3, and a connection to it would break off";
    assert_eq!(errors.matches(told).count(), 1, "{errors}");
}

/// However seldom it writes its log.
#[test]
fn a_removed_interface_is_noticed_at_once() {
    if !interfaces_allowed() {
        return;
    }
    let script = "ip link del wan; began=$(date +%s%N); wait $run; code=$?
        echo $(( ($(date +%s%N) - began) / 1000000 )); test $code = 2";
    let (text, errors) = well(&operated("--interval 60s", script));
    let ms: u64 = text.trim().parse().unwrap();
    assert!(ms < 3000, "{ms} ms on a machine that may be busy");
    assert!(errors.contains("an interface is gone"), "{errors}");
}

/// A socket in a folder that others can write to may be anybody's: nothing is asked there, least of all
/// which namespaces to enter.
#[test]
fn a_folder_that_others_can_write_to_is_not_trusted() {
    let runtime = scratch("runtime");
    let folder = runtime.join("bluewater");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&runtime, PermissionsExt::from_mode(0o700)).unwrap();
    let evil = UnixListener::bind(folder.join("evil.sock")).unwrap();
    evil.set_nonblocking(true).unwrap();
    let ask = |arguments: &[&str]| {
        let mut gateway = Command::new(GATEWAY);
        let output = gateway.args(arguments).env("XDG_RUNTIME_DIR", &runtime).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let questions = [&["ctl", "evil", "show"][..], &["join", "evil", "--", "true"]];
    for mode in [0o777, 0o720, 0o740] {
        fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
        for question in questions {
            let errors = ask(question);
            assert!(errors.contains("lets others in") && errors.contains("0700"), "{errors}");
        }
    }
    let other = runtime.join("other");
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
    fs::rename(&folder, &other).unwrap();
    std::os::unix::fs::symlink(&other, &folder).unwrap();
    let errors = ask(questions[0]);
    assert!(errors.contains("a link or no folder"), "{errors}");
    assert!(evil.accept().is_err(), "somebody asked");
    fs::remove_dir_all(&runtime).unwrap();
}

/// A cable that is pulled at one port is noticed behind the other, and put back, too; what was taken down
/// is taken up whatever becomes of the gateway. Where that is not wanted it is only said.
#[test]
fn the_loss_of_a_carrier_is_passed_on() {
    if !interfaces_allowed() {
        return;
    }
    let has = "has() { ip -o link show $1 | grep -q LOWER_UP; }
        soon() { for i in $(seq 100); do \"$@\" && return; sleep 0.05; done; false; }
        soon_not() { for i in $(seq 100); do \"$@\" || return 0; sleep 0.05; done; false; }";
    let log = scratch("log");
    let options = format!("--quiet --log {}", log.display());
    let script = format!(
        "{has}
        ip link set x down; soon_not has y || exit 11
        ip link set x up; soon has y || exit 12; soon has x || exit 13
        sleep 1
        ip link set y down; soon_not has x || exit 14
        ip link set y up; soon has x || exit 15; soon has y || exit 16
        sleep 1
        printf 'link set x down\nlink set y down\n' | ip -batch -; sleep 0.5
        printf 'link set y up\nlink set x up\n' | ip -batch -; soon has x || exit 17; soon has y || exit 18
        $g ctl $name show >&- || exit 19; end"
    );
    let (_, errors) = well(&operated(&options, &script));
    for words in [
        "warning: lan has lost its carrier: wan is taken down",
        "warning: lan has a carrier again: wan is taken up",
        "warning: wan has lost its carrier: lan is taken down",
    ] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
    let (lines, _) = read(&log);
    let event = lines.iter().find(|line| line["event"] == "carrier").unwrap();
    assert_eq!((&event["interface"], &event["carrier"]), (&"lan".into(), &false.into()));
    assert_eq!((&event["down"], event["time_s"].is_number()), (&"wan".into(), true));

    let killed = "ip link set x down; soon_not has y || exit 11
        kill -KILL $run; wait $run; soon has y";
    well(&operated("--quiet", &format!("{has}\n{killed}")));

    let kept = "ip link set x down; sleep 1; has y || exit 11; end";
    let (_, errors) = well(&operated("--quiet --keep-carrier", &format!("{has}\n{kept}")));
    assert!(errors.contains("warning: lan has lost its carrier\n"), "{errors}");
}

/// Room for two million packets a way takes a fair queue no memory, and so no time, before they come:
/// neither at the start nor with a change. Touched, its least part would take 100 MB. A FIFO fills its
/// ring at the start, and DRR its table of flows.
#[test]
fn a_huge_buffer_takes_memory_as_it_is_used() {
    if !interfaces_allowed() {
        return;
    }
    let script = "resident() { grep VmHWM /proc/$run/status; }
        resident
        for aqm in fq-codel fq-pie sfq cake; do
            $g ctl $name set --aqm $aqm --buffer 1900000p >&- || exit 11
            resident
        done
        end";
    let (text, _) = well(&operated("--quiet --buffer 2000000p --plane packet --aqm cake", script));
    let kilobytes: Vec<u32> =
        text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(kilobytes.len(), 5, "{text}");
    assert!(kilobytes.iter().all(|&kb| kb < 60_000), "{text}");
}

/// Whatever rights it has given up and however it ends, the socket's name goes.
#[test]
fn sockets_are_removed() {
    if !interfaces_allowed() {
        return;
    }
    for signal in ["INT", "KILL"] {
        let script = format!(
            "export XDG_RUNTIME_DIR=$(mktemp -d)
             $g run --rate 1mbit --lan other --wan another --name two & two=$!
             for i in $(seq 100); do $g ctl two show >&- 2>&- && break; sleep 0.05; done
             ls $XDG_RUNTIME_DIR/bluewater; kill -{signal} $two; wait $two
             for i in $(seq 100); do
                 test -z \"$(ls $XDG_RUNTIME_DIR/bluewater)\" && break; sleep 0.05
             done
             ls $XDG_RUNTIME_DIR/bluewater; rm -r $XDG_RUNTIME_DIR; end"
        );
        let script = format!("more; {script}");
        let (text, _) = well(&operated("--quiet", &script));
        assert_eq!(text, "two.sock\n", "SIG{signal}: there while it runs, and not behind it");
    }
}

/// Others' connections do not keep a scrape waiting.
#[test]
fn idle_and_slow_connections_do_not_hold_up_a_scrape() {
    if !allowed() {
        return;
    }
    let mut shell = Command::new(GATEWAY)
        .args("shell --quiet --metrics 0 --rate 8mbit -- cat".split(' '))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let url = BufReader::new(shell.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    let address = url.strip_prefix("metrics: http://").unwrap().split('/').next().unwrap();
    let idle: Vec<_> = (0..500).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut slow = TcpStream::connect(address).unwrap();
    slow.write_all(b"GET /met").unwrap();
    let clock = gateway::clock::Clock::new();
    let answer = http(&url, "GET /metrics?name=x HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n");
    let ms = clock.now() / 1_000_000;
    assert!(ms < 1500, "{ms} ms");
    slow.write_all(b"rics HTTP/1.1\r\n\r\n").unwrap();
    let mut late = String::new();
    slow.read_to_string(&mut late).unwrap();
    assert!(late.ends_with("# EOF\n"), "{late}");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    for (query, status) in [("classes=all", "200 OK"), ("classes=foo", "400 Bad Request")] {
        let wish = format!("GET /metrics?{query} HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n");
        let answer = http(&url, &wish);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{query}: {answer}");
    }
    assert!(text.contains("bluewater_drops_total{queue=\"up\",cause=\"policed\"} 0\n"), "{text}");
    for way in ["up", "down"] {
        let last = format!("bluewater_sojourn_seconds_bucket{{le=\"+Inf\",queue=\"{way}\"}} ");
        assert!(text.contains(&last), "{last} is not in\n{text}");
    }
    drop((idle, shell.stdin.take()));
    assert!(shell.wait().unwrap().success());
}
