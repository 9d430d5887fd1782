//! A gateway that a manager of services starts and ends.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

use super::operator::{is_root, operated, well};
use super::*;

/// A manager of services hears that packets flow, that the gateway lives, and that it ends.
#[test]
fn a_manager_of_services_is_told() {
    if !interfaces_allowed() {
        return;
    }
    let folder = scratch("service");
    fs::create_dir(&folder).unwrap();
    let manager = UnixDatagram::bind(folder.join("notify")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    fs::set_permissions(folder.join("notify"), PermissionsExt::from_mode(0o777)).unwrap();
    let script = format!(
        "end; export NOTIFY_SOCKET={}/notify WATCHDOG_USEC=2000000
         $g run --rate 1mbit --down-aqm codel --lan lan --wan wan --name $name & run=$!
         answers; sleep 2; end; unset WATCHDOG_PID
         WATCHDOG_USEC=900000 $g run --rate 1mbit --lan lan --wan wan --name $name
         test $? = 2",
        folder.display()
    );
    let (_, errors) = well(&operated("--quiet", &script));
    assert!(errors.contains("WATCHDOG_USEC=900000: signs of life come every 500 ms"), "{errors}");
    let mut heard = Vec::new();
    while heard.last().is_none_or(|last| last != "STOPPING=1") {
        let mut text = [0; 256];
        let length = manager.recv(&mut text).unwrap();
        heard.push(String::from_utf8_lossy(&text[..length]).into_owned());
    }
    assert_eq!(heard[0], "READY=1\nSTATUS=up 1mbit droptail, down 1mbit codel");
    let signs = heard.iter().filter(|what| *what == "WATCHDOG=1").count();
    assert!((2..=12).contains(&signs), "{heard:?}");
}

/// What is set while it runs can be kept; a monitor asks whether it forwards.
#[test]
fn settings_are_saved_and_health_is_told() {
    if !interfaces_allowed() {
        return;
    }
    let folder = scratch("saved");
    fs::create_dir(&folder).unwrap();
    let script = format!(
        "$g ctl $name set --way down --rate 7mbit --aqm pie --param target=20ms >&- || exit 11
         $g ctl $name show | grep -o '\"rate\":\"[^\"]*\"' > {at}/before
         $g ctl $name save > {at}/saved.toml || exit 12
         exec 3<>/dev/tcp/127.0.0.1/9100; printf 'GET /health HTTP/1.1\\r\\n\\r\\n' >&3
         head -n 1 <&3 | grep -q '200 OK' || exit 13
         kill -STOP $run
         exec 3<>/dev/tcp/127.0.0.1/9100; printf 'GET /health HTTP/1.1\\r\\n\\r\\n' >&3
         ! timeout 3 head -n 1 <&3 | grep -q '200 OK' || exit 14
         kill -CONT $run; end
         $g run --config {at}/saved.toml --lan lan --wan wan --name $name & run=$!
         answers
         $g ctl $name show | grep -o '\"rate\":\"[^\"]*\"' > {at}/after
         $g ctl $name save; end
         cmp {at}/before {at}/after",
        at = folder.display()
    );
    let (text, _) = well(&operated("--metrics 9100", &script));
    assert!(text.contains("rate = \"1mbit\"") && text.contains("down-rate = \"7mbit\""), "{text}");
    assert!(text.contains("[down-param]") && text.contains("target = \"20ms\""), "{text}");
}

/// Without a gateway packets pass by the kernel's bridge, and with one by it alone; without either, be it that one was
/// killed, they do not.
#[test]
fn a_bypass_passes_packets_while_no_gateway_runs() {
    if !interfaces_allowed() {
        return;
    }
    let folder = scratch("bypass");
    fs::create_dir(&folder).unwrap();
    let script = format!(
        "end; c={}/run.toml
         printf 'rate = \"1mbit\"\nlan = \"lan\"\nwan = \"wan\"\n' > $c
         unshare -n sleep 60 >&- 2>&- & far=$!; sleep 0.3
         trap 'kill $run $far $sink 2>&-' EXIT
         ip link set y netns $far; nsenter -t $far -n ip addr add 10.9.0.2/24 dev y
         nsenter -t $far -n ip link set y up; ip addr add 10.9.0.1/24 dev x
         nsenter -t $far -n $g sink 2>&- & sink=$!
         reaches() {{ timeout 3 $g bulk --time 50ms 10.9.0.2 2>&-; }}
         soon() {{ for i in 1 2 3 4 5 6; do reaches && return; sleep 0.5; done; return 1; }}
         reaches && exit 11
         $g bypass $c || exit 12
         $g bypass $c || exit 13
         soon || exit 14
         ip -o addr show | grep bw-bypass && exit 15
         test \"$(cat /proc/sys/net/ipv6/conf/bw-bypass*/disable_ipv6)\" != 0 || exit 16
         printf 'rate = \"1mbit\"\nlan = \"wan\"\nwan = \"lan\"\n' > $c.turned
         $g bypass $c.turned || exit 17
         $g bypass --off $c.turned || exit 18
         $g bypass --off $c || exit 19
         ip -o link show | grep bw-bypass && exit 21
         reaches && exit 22
         ip link set lan down; $g bypass $c || exit 23
         soon || exit 24
         $g run --config $c --name $name --aqm nope && exit 25
         reaches || exit 26
         $g run --config $c --name $name --quiet & run=$!
         answers
         $g bypass $c && exit 27
         printf 'lan = \"lan\"\nwan = \"x\"\n' > $c.loop; $g bypass $c.loop && exit 28
         soon || exit 20
         kill -9 $run; wait $run; reaches && exit 29
         $g bypass $c || exit 30
         soon || exit 31
         $g run --config $c --name $name --quiet & run=$!
         answers; soon || exit 32
         ip -o link show | grep bw-bypass && exit 33
         end; reaches && exit 34
         printf 'rate = \"1mbit\"\nlan = 5\n' > $c; $g bypass $c; test $? = 2",
        folder.display()
    );
    let (_, errors) = well(&operated("--quiet", &script));
    assert!(errors.contains("run.toml:2: lan: the name of an interface is wanted"), "{errors}");
    assert!(errors.contains("another gateway (process"), "{errors}");
    assert!(errors.contains("frames would go round in circles"), "{errors}");
}

/// Members of the group that a gateway names may ask and change it, by whichever of their groups; others may not. The
/// next gateway in that folder has no group.
#[test]
fn a_group_may_use_ctl() {
    if !interfaces_allowed() || !is_root() {
        return;
    }
    let script = r#"
        end; export name; cp $g /tmp/$name; trap 'rm /tmp/$name' EXIT; unset XDG_RUNTIME_DIR
        unshare -m bash -c '
            trap "kill \$run" EXIT; mount -t tmpfs -o mode=755 none /run; g=/tmp/$name
            start() { $g run --rate 1mbit --lan lan --wan wan --name $name --quiet $1 & run=$!
                until $g ctl $name show >&- 2>&-; do kill -0 $run || exit 10; sleep 0.05; done; }
            as() { setpriv --reuid 4711 $1 $g ctl --user root $name $2; }
            start "--group 4712"
            for groups in "--regid 4711 --groups 4711,4712" "--regid 4712 --clear-groups"; do
                as "$groups" show >&- || exit 11
                as "$groups" "set --rate 2mbit" >&- || exit 12
            done
            as "--regid 4711 --clear-groups" show && exit 13
            stat -c "%a %g" /run/bluewater /run/bluewater/$name.sock
            kill $run; wait $run; start
            as "--regid 4711 --groups 4711,4712" show && exit 14
            kill $run; wait $run
            $g run --rate 1mbit --lan lan --wan wan --group nobody-here; test $? = 2'"#;
    let (text, errors) = well(&operated("--quiet", script));
    assert_eq!(text, "711 0\n660 4712\n");
    assert_eq!(errors.matches("no gateway called").count(), 2, "{errors}");
    assert!(errors.contains("there is no such group"), "{errors}");
}
