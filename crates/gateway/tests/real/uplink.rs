//! The way out of a shell, and shells within shells.

use super::*;

/// What `script` prints where there is a network beyond; `unshare` says with which rights.
fn beyond(unshare: &str, script: &str) -> Output {
    Command::new("unshare")
        .args([unshare, "sh", "uplink.sh", GATEWAY, script])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))
        .env_remove("BLUEWATER_DEPTH")
        .output()
        .unwrap()
}

fn have(tool: &str) -> bool {
    let there =
        ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].iter().any(|f| Path::new(f).join(tool).exists());
    if !there {
        skipped(&format!("{tool} is not here"));
    }
    there
}

/// What says that such a thing is not allowed here: at all, or without rights of root.
const NOT_ALLOWED: &[&str] = &["Operation not permitted", "no user namespace"];

/// What was printed, on both outputs, unless the errors have one of the words for what is not allowed.
fn tried(output: &Output, not_allowed: &[&str]) -> Option<(String, String)> {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (text, errors) = (text(&output.stdout), text(&output.stderr));
    if not_allowed.iter().any(|words| errors.contains(words)) {
        skipped(&errors);
        return None;
    }
    Some((text, errors))
}

/// The words of the one line that `internet.py ask` prints.
#[track_caller]
fn asked(output: &Output) -> (f64, Vec<String>) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    let line = text.lines().find(|line| line.split(' ').count() == 3);
    let words = line.unwrap_or_else(|| panic!("{text}{errors}")).split(' ').map(String::from);
    let words: Vec<String> = words.collect();
    (words[0].parse().unwrap(), words[1..].to_vec())
}

/// A name is asked for and a connection made through the link: its round trip is on top. The server
/// sees the host. Others may do the same; after the last of them the host is as it was.
#[test]
fn a_command_reaches_the_network_through_the_link() {
    if !interfaces_allowed() || !have("nft") {
        return;
    }
    let script = "
        other() { $gateway shell --quiet --uplink --dns 203.0.113.1 --rate 10mbit -- sleep $1 & }
        other 2; sleep 1; other 4
        $gateway shell --quiet --uplink --dns 203.0.113.1 --rate 10mbit --delay 20ms -- \
            python3 internet.py ask www.example 80
        wait; sleep 0.5; nft list tables; cat /proc/sys/net/ipv4/ip_forward; ip -br link | grep ^bw";
    let output = beyond("-n", script);
    let Some((text, errors)) = tried(&output, &NOT_ALLOWED[..1]) else { return };
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_else(|| panic!("{errors}"));
    let words: Vec<&str> = first.split(' ').collect();
    let time: f64 = words[0].parse().unwrap();
    assert!((40.0..80.0).contains(&time), "{text}{errors}");
    assert_eq!(words[1..], ["198.51.100.1", "203.0.113.2"], "{errors}");
    assert_eq!(lines.collect::<Vec<_>>(), ["0"], "no rules, no forwarding, no interface: {errors}");
}

/// Nobody of this machine comes in either.
#[test]
fn nothing_new_comes_in_from_this_machine() {
    if !interfaces_allowed() || !have("nft") {
        return;
    }
    let script = "
        $gateway shell --quiet --uplink --dns 203.0.113.1 --rate 10mbit \
            --far \"$gateway sink\" -- sleep 7 &
        for k in $(seq 200); do ip -4 -br addr | grep -q '^bwup.* 100' && break; sleep 0.05; done
        sleep 1; here=$(ip -4 -br addr | sed -n 's/^bwup.* \\(100.*\\)[.].*/\\1/p')
        last=$(ip -4 -br addr | sed -n 's/^bwup.*[.]\\(.*\\)[/]30.*/\\1/p')
        python3 internet.py knock $here.$((last + 1)) 5001 9; ip -6 -br addr | grep bwup
        table=$(nft list tables | sed -n 's/table ip \\(bluewater_bwup.*\\)/\\1/p')
        nft flush chain ip $table from_here; python3 internet.py knock $here.$((last + 1)) 5001
        wait";
    let output = beyond("-n", script);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("Operation not permitted") && text.is_empty() {
        skipped(&errors);
        return;
    }
    assert_eq!(text, "5001 TimeoutError\n9 TimeoutError\n5001 connected\n", "{errors}");
}

/// What the machine was before is known though its rules are gone, or whoever was to set it back.
#[test]
fn no_router_is_left_behind() {
    if !interfaces_allowed() || !have("nft") {
        return;
    }
    let script = "
        shell() { $gateway shell --quiet --uplink --dns 203.0.113.1 --rate 10mbit -- $*; }
        # Brackets, since this script's own command line has the pattern in it; and of this network alone.
        sweep='-f [b]ound-sweep-uplink --nslist net --ns '$$
        there() { pgrep $sweep > /dev/null; }
        awaited() { for k in $(seq 200); do there && break; sleep 0.05; done; sleep 0.3; }
        shell sleep 2 & awaited; nft flush ruleset; wait; sleep 0.5
        cat /proc/sys/net/ipv4/ip_forward
        shell sleep 2 & awaited; pkill -9 -n $sweep; wait; sleep 0.5
        cat /proc/sys/net/ipv4/ip_forward
        shell true; sleep 0.5; cat /proc/sys/net/ipv4/ip_forward; nft list tables";
    let output = beyond("-nm", script);
    let Some((text, errors)) = tried(&output, &NOT_ALLOWED[..1]) else { return };
    assert_eq!(text, "0\n1\n0\n", "{errors}");
}

/// `command` by a user without any rights, for whom `$program` is the gateway and `internet.py` is here.
fn as_user(user: u32, command: &str) -> String {
    format!(
        "folder=$(mktemp -d); program=$folder/gateway; cp $gateway $program
        cp internet.py $folder; cd $folder; chmod a+rx . gateway; mknod tun c 10 200; chmod a+rw tun
        mount --bind tun /dev/net/tun
        setpriv --reuid {user} --regid {user} --clear-groups env XDG_RUNTIME_DIR= HOME=/ {command}
        cd /; rm -r $folder"
    )
}

/// Without any rights of root.
#[test]
fn a_user_reaches_the_network_by_pasta() {
    if !interfaces_allowed() || !have("nft") || !have("pasta") {
        return;
    }
    let script = as_user(
        12346,
        "$program shell --quiet --uplink --dns 203.0.113.1 --rate 10mbit --delay 20ms -- \
            python3 internet.py ask www.example 80",
    );
    let output = beyond("-nm", &(script + "; ! pgrep -u 12346 -x pasta || echo left"));
    let Some((_, errors)) = tried(&output, NOT_ALLOWED) else { return };
    let (time, said) = asked(&output);
    assert!((40.0..90.0).contains(&time), "{time} ms: {errors}");
    assert_eq!(said, ["198.51.100.1", "203.0.113.2"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("left"));
}

/// A `pasta` that does not start says why.
#[test]
fn what_pasta_says_is_passed_on() {
    if !interfaces_allowed() || !have("nft") {
        return;
    }
    let script = "
        tun=$(mktemp -d)/tun; program=$(dirname $tun)/gateway; cp $gateway $program
        printf '#!/bin/sh\\necho pasta: no such option >&2; exit 3\\n' > $(dirname $tun)/pasta
        chmod a+rx $(dirname $tun) $(dirname $tun)/pasta $program; cd $(dirname $tun)
        mknod $tun c 10 200; chmod a+rw $tun; mount --bind $tun /dev/net/tun
        setpriv --reuid 12345 --regid 12345 --clear-groups env XDG_RUNTIME_DIR= HOME=/ PATH=$PWD:$PATH \
            $program shell --quiet --uplink --dns 203.0.113.1 --rate 10mbit -- true
        echo code $?; cd /; rm -r $(dirname $tun)";
    let output = beyond("-nm", script);
    let Some((text, errors)) = tried(&output, NOT_ALLOWED) else { return };
    assert!(text.contains("code 1") || text.contains("code 2"), "{text}{errors}");
    assert!(errors.contains("pasta ended (exit status: 3): pasta: no such option"), "{errors}");
}

/// 10 ms and 30 ms each way, one behind the other: 80 ms there and back.
#[test]
fn shells_within_shells_add_up() {
    if !interfaces_allowed() || !have("nft") {
        return;
    }
    let script = "$gateway shell --quiet --rate 10mbit --delay 10ms --far \"$gateway sink\" -- \
        $gateway shell --quiet --rate 10mbit --delay 30ms -- \
        sh -c 'python3 internet.py ask $BLUEWATER_FAR 5001'";
    let output = beyond("-n", script);
    let Some((_, errors)) = tried(&output, &NOT_ALLOWED[..1]) else { return };
    let (time, said) = asked(&output);
    assert_eq!(said[0], "100.64.0.2");
    assert!((80.0..130.0).contains(&time), "{time} ms: {errors}");
}

/// The same without root, where `pasta` brings packets from one link to the next.
#[test]
fn shells_within_shells_add_up_for_a_user() {
    if !interfaces_allowed() || !have("nft") || !have("pasta") {
        return;
    }
    let script = as_user(
        12347,
        "$program shell --quiet --rate 10mbit --delay 10ms --far \"$program sink\" -- \
        $program shell --quiet --rate 10mbit --delay 30ms -- \
        sh -c 'python3 internet.py ask $BLUEWATER_FAR 5001'",
    );
    let output = beyond("-nm", &script);
    let Some((_, errors)) = tried(&output, NOT_ALLOWED) else { return };
    let (time, said) = asked(&output);
    assert_eq!(said[0], "100.64.0.2");
    assert!((80.0..130.0).contains(&time), "{time} ms: {errors}");
}

/// Three deep, and where the outer one leads out.
#[test]
fn a_user_has_shells_within_shells_within_shells() {
    if !interfaces_allowed() || !have("nft") || !have("pasta") {
        return;
    }
    let shell = "$program shell --quiet --rate 10mbit";
    for outer in ["", "--uplink --dns 203.0.113.1"] {
        let command = format!("{shell} {outer} -- {shell} -- {shell} -- cat /etc/resolv.conf");
        let output = beyond("-nm", &as_user(12348, &command));
        let Some((text, errors)) = tried(&output, NOT_ALLOWED) else { return };
        assert!(output.status.success(), "{text}{errors}");
        assert!(outer.is_empty() || text == "nameserver 203.0.113.1\n", "{text}{errors}");
    }
}

/// What is missing is said before anything starts.
#[test]
fn an_uplink_without_its_tools_is_refused() {
    let output = Command::new(GATEWAY)
        .args(["shell", "--rate", "1mbit", "--uplink", "--", "/bin/true"])
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if !Path::new("/usr/sbin/nft").exists() && !Path::new("/sbin/nft").exists() {
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("there is no nft here"), "{errors}");
    }
    let output = gateway("shell --rate 1mbit --dns 192.0.2.1", &["true"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("--uplink"), "{errors}");
}

/// In a chroot whose root is no mount, a mount would be one of the whole machine.
#[test]
fn no_file_of_the_machine_is_replaced_from_a_chroot() {
    if !interfaces_allowed() || !have("nft") {
        return;
    }
    let script = "
        mount --make-rprivate / && mount --make-rshared / && mount -t tmpfs none /mnt
        root=/mnt/root
        for name in etc usr proc sys dev run ${gateway%/*}; do
            mkdir -p $root/$name; mount --rbind /${name#/} $root/$name
        done
        mkdir $root/tmp
        for name in bin sbin lib lib64; do ln -s usr/$name $root/$name; done
        chroot $root $gateway shell --quiet --uplink --dns 192.0.2.77 --rate 10mbit -- true
        echo code $?; grep -c 192.0.2.77 /etc/resolv.conf $root/etc/resolv.conf";
    let output = beyond("-nm", script);
    let Some((text, errors)) = tried(&output, &NOT_ALLOWED[..1]) else { return };
    assert!(text.starts_with("code 1\n/etc/resolv.conf:0\n"), "{text}{errors}");
    assert!(errors.contains("no mounts for the command alone"), "{errors}");
}
