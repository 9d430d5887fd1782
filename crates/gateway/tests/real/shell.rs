//! A command behind a link, and what becomes of it.

use super::*;

/// Asks for an echo, as `ping` does, which not every machine has.
const ECHO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/echo.py");

#[test]
fn a_command_has_its_exit_code_and_its_addresses() {
    if !allowed() {
        return;
    }
    let output = gateway("shell --rate 1mbit", &["sh", "-c", "echo $BLUEWATER_FAR; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "100.64.0.2\n");
    let output = gateway("shell --rate 1mbit", &["no-such-command"]);
    assert_eq!(output.status.code(), Some(127));
    let output = gateway("shell --rate 1mbit", &["sh", "-c", "kill -9 $$"]);
    assert_eq!(output.status.code(), Some(137));
}

/// Process numbers begin anew in each shell, and names do not.
#[test]
fn a_shell_in_a_shell_in_a_shell_has_a_name_of_its_own() {
    if !allowed() {
        return;
    }
    let script = "echo $BLUEWATER_NAME; test $1 = 0 || \
                  exec $0 shell --quiet --rate 10mbit -- sh -c \"$2\" $0 $(($1 - 1)) \"$2\"";
    let output =
        gateway("shell --quiet --rate 10mbit", &["sh", "-c", script, GATEWAY, "3", script]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    let names: std::collections::HashSet<&str> = text.lines().collect();
    assert_eq!(names.len(), 4, "{text}{errors}");
}

/// As another user than root, without any rights, and through a shell in a shell.
#[test]
fn ping_needs_no_rights() {
    if !allowed() {
        return;
    }
    let script = format!(
        "export TMPDIR=$(mktemp -d); chmod 1777 $TMPDIR; unset XDG_RUNTIME_DIR; cd $TMPDIR
         cp {GATEWAY} gateway; chmod 755 gateway; cp {ECHO} echo.py
         if test $(id -u) = 0; then
             user='--reuid 4711 --regid 4711 --clear-groups'
             # The device as most machines have it: for everybody.
             mknod tun c 10 200; chmod 666 tun; mount --bind tun /dev/net/tun
         fi
         setpriv $user --no-new-privs ./gateway shell --quiet --rate 20mbit -- \\
            ./gateway shell --quiet --rate 10mbit --delay 5ms -- python3 echo.py ping 100.64.1.2
         code=$?; test $(id -u) = 0 && umount /dev/net/tun; rm -r $TMPDIR; exit $code"
    );
    let root = fs::metadata("/proc/self").map(|it| std::os::unix::fs::MetadataExt::uid(&it));
    let mut shell = Command::new(if root.unwrap() == 0 { "unshare" } else { "sh" });
    if shell.get_program() == "unshare" {
        shell.args(["-m", "sh"]);
    }
    let output = shell.args(["-c", &script]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("no user namespace") || errors.contains("no TUN device") {
        return skipped(&errors);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text == "reached\n", "{text}{errors}");
}

/// A server that asks for its own name before it listens: nobody is there who could be asked, and none is
/// waited for.
#[test]
fn a_server_that_looks_for_its_name_listens_in_time() {
    if !allowed() {
        return;
    }
    let ask = "import urllib.request as u; print(u.urlopen('http://100.64.0.2:8000').status)";
    // A busy machine may be late once; waiting for an answer about a name is late each time.
    let in_time = (0..3).any(|_| {
        let output = Command::new(GATEWAY)
            .args(["shell", "--quiet", "--rate", "10mbit", "--far"])
            .args(["python3 -m http.server 8000 --bind 100.64.0.2", "--", "python3", "-c", ask])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let is_late = errors.contains("nothing listens");
        assert!(is_late || output.status.success(), "{errors}");
        assert!(is_late || String::from_utf8_lossy(&output.stdout).ends_with("200\n"), "{errors}");
        !is_late
    });
    assert!(in_time);
}

/// What is missing is what is named: files, rights, or the device.
#[test]
fn what_is_missing_is_named() {
    if !allowed() {
        return;
    }
    let few = format!("ulimit -n 10; {GATEWAY} shell --rate 1mbit -- true");
    let mut missing = vec![("sh", vec!["-c".to_string(), few], "ulimit -n 512")];
    if fs::metadata("/proc/self").map(|it| std::os::unix::fs::MetadataExt::uid(&it)).unwrap() == 0 {
        let without =
            format!("setpriv --bounding-set=-net_admin {GATEWAY} shell --rate 1mbit -- true");
        missing.push(("sh", vec!["-c".into(), without], "CAP_NET_ADMIN"));
    }
    for (program, arguments, words) in missing {
        let output = Command::new(program).args(&arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
}

/// With 200 MB of address space a buffer of 300 MB is refused, not aborted at.
#[test]
fn memory_that_is_not_there_is_said() {
    if !allowed() {
        return;
    }
    let script =
        format!("ulimit -v 200000; exec {GATEWAY} shell --rate 1gbit --buffer 200000p -- true");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("memory for the 2"), "{errors}");
}

#[test]
fn what_is_wrong_is_said_before_anything_starts() {
    let marker = scratch("started");
    let touch = ["touch", marker.to_str().unwrap()];
    for (options, words) in [
        ("--rate 10mbps", "tc reads a lowercase bps"),
        ("--rate 10mbit --aqm bleu", "did you mean `blue`"),
        ("--rate 10mbit --aqm blue --param incremnt=0.1", "increment"),
        ("--rate 10mbit --aqm blue --param increment=7", "allowed"),
        ("--rate 10mbit --buffer 10B", "such buffer"),
        ("--rate 10mbit --delay 1h", "at most 60s"),
        ("--rate 10mbit --log /no/such/folder/log", "/no/such/folder"),
        ("--rate 10mbit --interval 999us", "1ms or more"),
    ] {
        let output = gateway(&format!("shell {options}"), &touch);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if !errors.contains(words) && !allowed() {
            return;
        }
        assert_eq!(output.status.code(), Some(2), "{options}: {errors}");
        assert!(errors.contains(words), "{options}: {errors}");
        assert!(!marker.exists(), "{options}");
    }
}

/// Whether a process has `words` in its command line.
fn running(words: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|p| fs::read(p.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(words))
}

/// Whether a process has exactly this command line.
fn exactly(line: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|p| fs::read(p.path().join("cmdline")).ok());
    lines.any(|found| String::from_utf8_lossy(&found).replace('\0', " ").trim_end() == line)
}

/// Starts a gateway whose command waits, and sends it `signal`. Neither the command, nor what that has
/// left in the background, nor what was started at the far end outlives it. Returns its exit code.
fn interrupted(signal: &str, script: &str) -> Option<i32> {
    let number = format!("1234{}{}", std::process::id(), signal.len());
    let [near, background, far] = [1, 2, 3].map(|n| format!("sleep {number}{n}"));
    let script = format!("{script} (setsid {background} &); {near} & while :; do sleep 0.1; done");
    let mut gateway = Command::new(GATEWAY)
        .args(["shell", "--rate", "1mbit", "--quiet", "--far", &format!("{far}; true")])
        .args(["--", "sh", "-c", &script])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let all = [near, background, far];
    let there = |sleep: &String| exactly(sleep);
    assert!(soon(|| all.iter().all(there)));
    Command::new("kill").args([signal, &gateway.id().to_string()]).status().unwrap();
    let code = gateway.wait().unwrap().code();
    assert!(soon(|| !all.iter().any(there)), "something outlives a gateway that got {signal}");
    assert!(soon(|| !running(&number)), "something outlives a gateway that got {signal}");
    code
}

#[test]
fn nothing_is_left_when_the_gateway_is_killed() {
    if !allowed() {
        return;
    }
    assert_eq!(interrupted("-KILL", ""), None);
    // On SIGTERM the command may still clean up; its exit code counts.
    assert_eq!(interrupted("-TERM", "trap 'exit 5' TERM;"), Some(5));
}

/// When the command ends, what it has left in the background is told to end, too, and then ended.
#[test]
fn nothing_is_left_when_the_command_ends() {
    if !allowed() {
        return;
    }
    let file = scratch("told");
    let sleep = format!("sleep 98{}", std::process::id());
    let script = format!(
        "(trap 'echo told > {}; exit' TERM; while :; do sleep 0.1; done) &
         (trap '' TERM; exec setsid {sleep}) & sleep 0.3; exit 3",
        file.display()
    );
    let output = gateway("shell --rate 1mbit --quiet", &["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(3));
    assert!(!running(&sleep));
    assert_eq!(fs::read_to_string(&file).unwrap(), "told\n");
    _ = fs::remove_file(&file);
}

/// Once the command runs, no thread of the gateway has rights left but that to end it.
#[test]
fn rights_are_given_up() {
    if !allowed() {
        return;
    }
    const KILL: u64 = 1 << 5;
    let mut shell = Command::new(GATEWAY)
        .args("shell --rate 10mbit --quiet --far true -- sleep 2".split(' '))
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_secs(1));
    let tasks = fs::read_dir(format!("/proc/{}/task", shell.id())).unwrap().flatten();
    let text: String =
        tasks.map(|t| fs::read_to_string(t.path().join("status")).unwrap()).collect();
    assert!(shell.wait().unwrap().success());
    let of = |key: &str| -> Vec<u64> {
        let lines = text.lines().filter_map(|l| l.strip_prefix(key));
        lines.map(|n| u64::from_str_radix(n.trim(), 16).unwrap()).collect()
    };
    for key in ["CapPrm:", "CapEff:", "CapInh:", "CapBnd:", "CapAmb:"] {
        let all = of(key);
        assert!(all.len() >= 3, "threads of main, near and far: {text}");
        assert!(all.iter().all(|held| held & !KILL == 0), "{key} {all:x?}");
    }
    assert!(of("NoNewPrivs:").iter().all(|&on| on == 1), "{text}");
    assert!(of("Seccomp:").iter().all(|&filtered| filtered == 2), "{text}");
}

/// Two commands of other processes share a shell's link: a receiver at one end, a sender at the
/// other. What they carry goes through the queue of its way, and they have no rights there.
#[test]
fn other_commands_join_either_end() {
    if !allowed() {
        return;
    }
    for (receiver, sender, to, way) in
        [("far", "near", "100.64.0.2", 0), ("near", "far", "100.64.0.1", 1)]
    {
        let name = format!("join-{}-{way}", std::process::id());
        let log = scratch("log");
        let mut shell = waiting(&name, &log);
        let mut sink = Command::new(GATEWAY)
            .args(["join", &name, "--end", receiver, "--", GATEWAY, "sink"])
            .spawn()
            .unwrap();
        let script = format!(
            "{GATEWAY} bulk {to} --time 1s && grep CapEff /proc/self/status; \
             echo $BLUEWATER_NAME; exit 7"
        );
        let output = gateway(&format!("join {name} --end {sender}"), &["sh", "-c", &script]);
        sink.kill().unwrap();
        sink.wait().unwrap();
        drop(shell.stdin.take());
        assert!(shell.wait().unwrap().success());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{errors}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text, format!("CapEff:\t{:016x}\n{name}\n", 0));
        let (_, ways) = read(&log);
        let bytes = ways[way]["departures_bytes"].as_u64().unwrap();
        assert!((100_000..2_000_000).contains(&bytes), "{bytes} bytes: {errors}");
    }
    let output = gateway("join not-there", &["true"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("no gateway called not-there is running"), "{errors}");
}

/// As the shell ends, a joined command may clean up, and one that does not end by itself is killed.
#[test]
fn a_joined_command_ends_with_the_shell() {
    if !allowed() {
        return;
    }
    let (name, log) = (format!("ends-{}", std::process::id()), scratch("log"));
    let mut shell = waiting(&name, &log);
    let scripts = [
        "trap 'exit 5' TERM; echo; while :; do sleep 0.1; done",
        "trap '' TERM; echo; exec sleep 60",
    ];
    let joined = scripts.map(|script| {
        let mut joined = Command::new(GATEWAY)
            .args(["join", &name, "--", "sh", "-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It says when it is ready for the signal.
        BufReader::new(joined.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        joined
    });
    drop(shell.stdin.take());
    assert!(shell.wait().unwrap().success());
    let codes = joined.map(|mut joined| joined.wait().unwrap().code());
    assert_eq!(codes, [Some(5), Some(128 + 9)]);
    _ = fs::remove_file(&log);
}

/// A mistyped option is no command; what is behind `--` or begins with a command is.
#[test]
fn a_mistyped_option_is_no_command() {
    for line in ["shell --rate 1mbit --dealy 5ms -- true", "join x --edn far -- true"] {
        let output = gateway(line, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("unexpected argument '--"), "{errors}");
    }
    if allowed() {
        let output = gateway("shell --rate 1mbit --quiet echo --dealy -- x", &[]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "--dealy -- x\n");
    }
}

/// The command starts when what is at the far end listens, by TCP or UDP; what has ended or never
/// listens does not hold it up for long, and is said. The program is found by its name.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long a command of the system takes")]
fn the_far_end_listens_before_the_command_starts() {
    if !allowed() {
        return;
    }
    let slow = "sleep 0.7; exec bluewater-gateway sink";
    let look = "cat /proc/net/tcp6 /proc/net/tcp | grep -c ' 0A '; true";
    let connect = "exec 3<>/dev/tcp/100.64.0.2/5001 && echo connected";
    let run = |far: &str, command: &[&str]| {
        let mut gateway = Command::new(GATEWAY);
        gateway.args(["shell", "--rate", "1mbit", "--quiet", "--far", far, "--"]).args(command);
        let began = std::time::Instant::now();
        (gateway.env_remove("BLUEWATER_NAME").output().unwrap(), began.elapsed())
    };
    let (output, _) = run(slow, &["bash", "-c", connect]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "connected\n", "{errors}");
    assert!(!errors.contains("note:"), "{errors}");
    let (output, _) = run("true", &["sh", "-c", look]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "it has ended");
    let (output, took) = run("sleep 30", &["true"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("nothing listens at the far end yet: sleep 30"), "{errors}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}
