//! Real packets of the kernel's own TCP through the binary, in network namespaces.
//!
//! Where namespaces or TUN devices are not allowed these tests are skipped, and say so; in continuous
//! integration (`CI`) they fail.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{fs, thread};

use serde_json::Value;

#[path = "operator/mod.rs"]
mod operator;

const GATEWAY: &str = env!("CARGO_BIN_EXE_bluewater-gateway");

/// Runs the gateway with `arguments`, words apart by spaces, then `command` behind `--`.
fn gateway(arguments: &str, command: &[&str]) -> Output {
    let mut gateway = Command::new(GATEWAY);
    gateway.args(arguments.split_whitespace());
    if !command.is_empty() {
        gateway.arg("--").args(command);
    }
    gateway.output().unwrap()
}

/// Whether this machine allows what the tests need; if not, says so past the test's capture.
fn allowed() -> bool {
    let output = gateway("shell --rate 1mbit --quiet", &["true"]);
    let why = String::from_utf8_lossy(&output.stderr);
    let missing = ["no user namespace", "no network namespace", "no TUN device"];
    let refused = missing.iter().any(|m| why.contains(m));
    if refused {
        skipped(&why);
    }
    !refused
}

/// Says past the test's capture that something is not tried; where everything is to be, that fails.
fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "real packets cannot be tried here: {why}");
    _ = writeln!(std::io::stderr(), "SKIPPED a test with real packets: {why}");
}

/// A file that nobody else uses.
fn scratch(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("bluewater-{}-{number}-{name}", std::process::id()))
}

/// The lines of a log, and the summaries of the ways up and down.
fn read(log: &Path) -> (Vec<Value>, [Value; 2]) {
    let text = fs::read_to_string(log).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let last = lines.pop().unwrap();
    _ = fs::remove_file(log);
    (lines, [last["summary"][0].clone(), last["summary"][1].clone()])
}

/// Sends for `seconds` over `flows` connections from the near end to the far end.
fn bulk(options: &str, to: &str, flows: u32, seconds: u32) -> (Output, Vec<Value>, [Value; 2]) {
    let log = scratch("log");
    let options = format!("shell {options} --log {} --far", log.display());
    let mut gateway = Command::new(GATEWAY);
    gateway.args(options.split_whitespace()).arg(format!("{GATEWAY} sink"));
    let arguments = format!("bulk {to} --flows {flows} --time {seconds}s --congestion reno");
    let output =
        gateway.arg("--").arg(GATEWAY).args(arguments.split_whitespace()).output().unwrap();
    let (lines, summaries) = read(&log);
    (output, lines, summaries)
}

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

/// While nothing comes, the gateway sleeps: 2 s with an algorithm that has a timer (15 ms) take less
/// than a tenth of them on the processor. Fields 14 and 15 of `stat` are in 1/100 s.
#[test]
fn an_idle_link_sleeps() {
    if !allowed() {
        return;
    }
    let mut shell = Command::new(GATEWAY)
        .args("shell --rate 10mbit --aqm pie --quiet -- sleep 3".split(' '))
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_secs(2));
    let text = fs::read_to_string(format!("/proc/{}/stat", shell.id())).unwrap();
    let fields = text.rsplit(')').next().unwrap().split_whitespace();
    let ticks: u32 = fields.skip(11).take(2).map(|n| n.parse::<u32>().unwrap()).sum();
    assert!(shell.wait().unwrap().success());
    assert!(ticks < 20, "{ticks} ticks");
}

/// The rate is a bound that nothing exceeds: what departs in a window is at most rate × window and
/// one packet. The round trip is at least both delays, so that a window of 10 segments needs 40 ms.
/// On a busy machine TCP may get less; a third of the rate shows that it works.
#[test]
fn tcp_gets_the_rate_and_no_more() {
    if !allowed() {
        return;
    }
    for to in ["100.64.0.2", "fd64::2"] {
        let (output, lines, [up, down]) = bulk("--rate 8mbit --delay 20ms --buffer 50kB", to, 4, 4);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let samples: Vec<&Value> = lines.iter().filter(|l| l["queue"] == "up").collect();
        assert!(samples.len() >= 4, "a line a second: {}", samples.len());
        for pair in samples.windows(2) {
            let seconds = pair[1]["time_s"].as_f64().unwrap() - pair[0]["time_s"].as_f64().unwrap();
            let bits = 8.0 * pair[1]["departures_bytes"].as_f64().unwrap();
            assert!(bits <= 8e6 * seconds + 8.0 * 1500.0, "{bits} bit in {seconds} s");
        }
        let throughput = up["throughput_bps"].as_f64().unwrap();
        assert!((8e6 / 3.0..=8.02e6).contains(&throughput), "{to}: {throughput}");
        for way in [&up, &down] {
            let count = |key: &str| way[key].as_u64().unwrap();
            let queued = count("arrivals") - count("departures") - count("drops");
            assert!(queued <= 50_000 / 28, "{way}");
            assert_eq!(count("refused"), 0);
        }
    }
}

/// What real packets met at the gateway's queues, the simulator comes to from their arrivals alone.
#[test]
fn a_recording_replays_with_the_same_decisions() {
    if !allowed() {
        return;
    }
    let file = scratch("run.arr");
    let options = format!(
        "--rate 8mbit --delay 5ms --buffer 20kB --aqm red --ecn --record {}",
        file.display()
    );
    let (_, _, summaries) = bulk(&options, "100.64.0.2", 5, 2);
    let output = gateway(&format!("replay {}", file.display()), &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let replayed: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    for (live, replayed) in summaries.iter().zip(&replayed) {
        for (key, value) in replayed.as_object().unwrap() {
            assert_eq!(live[key], *value, "{key}");
        }
    }
    assert!(summaries[0]["drops"].as_u64().unwrap() + summaries[0]["marks"].as_u64().unwrap() > 0);

    // Another arrival length: other decisions, exit code 1.
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 0x20;
    fs::write(&file, bytes).unwrap();
    let output = gateway(&format!("replay {}", file.display()), &[]);
    assert!(!output.status.success(), "a damaged recording passes");
    _ = fs::remove_file(&file);
}

/// Half of the packets are marked, and half of those that cannot be are dropped. Had a checksum been
/// wrong, no marked packet would be accepted: TCP would not get on. A connection whose first SYN is
/// lost goes on without ECN; that all of sixteen do is one case in 65536.
#[test]
fn tcp_accepts_the_marks() {
    if !allowed() {
        return;
    }
    let options = "--rate 8mbit --delay 2ms --ecn --aqm bernoulli --param p=0.5 --param ecn=true \
                   --down-aqm droptail";
    for to in ["100.64.0.2", "fd64::2"] {
        let (_, _, [up, down]) = bulk(options, to, 16, 3);
        let count = |key: &str| up[key].as_u64().unwrap();
        assert!(count("marks") > 50, "{up}");
        // Only what has no data is not ECN-capable: SYNs, and what is sent again.
        assert!(count("departures") > 5 * count("drops"), "{up}");
        assert!(down["departures"].as_u64().unwrap() > 50, "acknowledgements: {down}");
    }
}

/// Whether interfaces can be made here, with tools that are not ours.
fn interfaces_allowed() -> bool {
    let tools = ["unshare", "nsenter", "ip", "bash"];
    let found = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !tools.into_iter().all(found) {
        skipped(&format!("it needs {tools:?}"));
        return false;
    }
    allowed()
}

/// How frames come and go here: AF_XDP only where there is all that it needs. That no namespace of
/// ours can give, but root of the machine has it.
fn planes() -> Vec<&'static str> {
    let output = while_running("xdp", "--plane xdp", "kill -INT $run");
    let mut planes = vec!["packet"];
    if output.status.success() {
        planes.push("xdp");
    } else {
        let why = String::from_utf8_lossy(&output.stderr);
        _ = writeln!(std::io::stderr(), "SKIPPED AF_XDP: {why}");
    }
    planes
}

/// What comes of a gateway between interfaces without hosts at which `sh` does `what` as soon as it
/// forwards.
fn while_running(plane: &str, options: &str, what: &str) -> Output {
    let log = scratch("log");
    let script = format!(
        "log={}
         ip link add lan type veth peer name x; ip link add wan type veth peer name y
         for i in lan wan x y; do ip link set $i up; done
         {GATEWAY} run --rate 1mbit --lan lan --wan wan --log $log {options} & run=$!
         while kill -0 $run 2>&-; do test -s $log && break; sleep 0.05; done
         sleep 0.3; {what}
         wait $run",
        log.display()
    );
    let output = in_namespace(plane, &["-c", &script]);
    _ = fs::remove_file(&log);
    output
}

/// Runs `sh` in a network namespace of its own, for AF_XDP with the rights of the machine's root.
fn in_namespace(plane: &str, arguments: &[&str]) -> Output {
    Command::new("unshare")
        .arg(if plane == "xdp" { "-n" } else { "-rn" })
        .arg("sh")
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))
        .output()
        .unwrap()
}

/// What `script` does with two hosts and a gateway between their Ethernet interfaces, which have all
/// their offloads on: the gateway's log and summaries.
fn between_interfaces(script: &str, plane: &str, options: &str) -> (Vec<Value>, [Value; 2]) {
    let log = scratch("log");
    let all = format!("--rate 8mbit --delay 5ms --plane {plane} {options}");
    let mut arguments = vec![script, GATEWAY, log.to_str().unwrap()];
    arguments.extend(all.split_whitespace());
    let output = in_namespace(plane, &arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{plane}: {errors}");
    let (lines, summaries) = read(&log);
    assert_eq!(lines[0]["plane"], plane);
    (lines, summaries)
}

/// With all that can be asked for: TCP over IPv4 and IPv6, marks, the recording and its replay.
#[test]
fn frames_go_between_two_interfaces() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let file = scratch("run.arr");
        let options = format!("--buffer 30kB --aqm red --record {}", file.display());
        let (lines, [up, down]) = between_interfaces("bridge.sh", plane, &options);
        assert_eq!(lines[0]["queues"][0]["aqm"], "red");
        let number = |key: &str| up[key].as_f64().unwrap();
        // 4 s of sending in a bit more than 4 s; the gateway stops soon after.
        assert!(number("departures_bytes") * 8.0 > 4.0 * 8e6 / 3.0, "{up}");
        assert!(number("departures_bytes") * 8.0 <= 8e6 * number("measured_s") + 8.0 * 1514.0);
        assert!(number("marks") > 0.0, "ECN was asked for: {up}");
        for way in [&up, &down] {
            assert_eq!((&way["refused"], &way["lost_before"]), (&0.into(), &0.into()), "{way}");
            assert_eq!(way["conserved"], true);
        }
        let output = gateway(&format!("replay {}", file.display()), &[]);
        _ = fs::remove_file(&file);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("the same decisions"), "{told}");
        for way in [&up, &down] {
            assert!(told.contains(way["decision_hash"].as_str().unwrap()), "{told}");
        }
    }
}

/// A veth's other end may be anybody's: nobody who does not insist gets AF_XDP there, and it is said.
#[test]
fn a_plane_that_would_spoil_packets_is_not_taken_unasked() {
    if !interfaces_allowed() {
        return;
    }
    let output = while_running("packet", "", "head -n 1 $log; kill -INT $run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.starts_with("plane: packet, not xdp: lan is a veth"), "{errors}");
    let head: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(head["plane"], "packet");
    assert!(head["fallback"].as_str().unwrap().contains("--plane xdp"), "{head}");
}

/// A gateway that is stopped while 6000 datagrams come: what the kernel had no room for is counted,
/// and all the others arrive. AF_XDP has room for 4096.
#[test]
fn what_comes_while_it_cannot_read_is_counted() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let (_, [up, _]) = between_interfaces("stall.sh", plane, "--buffer 20000p");
        let count = |key: &str| up[key].as_u64().unwrap();
        let all = count("arrivals") + count("lost_before");
        // With what hosts say of themselves.
        assert!((6001..6050).contains(&all), "{plane}: {up}");
        assert!(plane != "xdp" || (1904..1950).contains(&count("lost_before")), "{up}");
        assert_eq!((&up["conserved"], count("drops")), (&true.into(), 0));
    }
}

/// Once frames go between interfaces no thread of the gateway has any rights.
#[test]
fn rights_over_interfaces_are_given_up() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let what = "cat /proc/$run/task/*/status; kill -INT $run";
        let output = while_running(plane, &format!("--plane {plane}"), what);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        for (key, value) in [
            ("CapPrm", 0),
            ("CapEff", 0),
            ("CapInh", 0),
            ("CapBnd", 0),
            ("NoNewPrivs", 1),
            ("Seccomp", 2),
        ] {
            let mut values =
                text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(":\t"));
            let all = values.all(|v| u64::from_str_radix(v, 16) == Ok(value));
            assert!(all && text.contains(key), "{plane}: {text}");
        }
        assert!(plane != "xdp" || text.contains("Uid:\t65534\t65534\t65534"), "{text}");
    }
}

/// A measurement over a window of a second, after a warm-up of one.
#[test]
fn the_testbed_measures_a_window() {
    if !allowed() {
        return;
    }
    let options = "testbed --rate 10mbit --delay 2ms --buffer 50kB --aqm blue --ecn --sack false \
                   --flows 6 --duration 2s --warmup 1s --interval 250ms";
    let output = gateway(options, &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    let up = &measured["queues"][0];
    let number = |key: &str| up[key].as_f64().unwrap();
    let seconds = number("measured_s");
    assert!((0.9..2.0).contains(&seconds), "{seconds} s");
    assert!(number("departures_bytes") * 8.0 <= 1e7 * seconds + 8.0 * 1500.0, "{up}");
    // What was queued as the window began or ends: at most the buffer.
    let apart = number("arrivals_bytes") - number("departures_bytes") - number("drops_bytes");
    assert!(apart.abs() <= 50_000.0, "{up}");
    assert!(number("marks") > 0.0, "{up}");
    assert_eq!((&measured["connected"], &measured["conserved"]), (&6.into(), &true.into()));
    let flows = measured["flows"].as_array().unwrap();
    let goodput: f64 = flows.iter().map(|f| f["goodput_bps"].as_f64().unwrap()).sum();
    // Headers are not goodput; what was on its way as the window began may be.
    assert!(goodput > 1e6 && goodput < 1.2 * number("throughput_bps"), "{goodput} {up}");
    let samples = measured["series"].as_array().unwrap();
    assert!((4..=9).contains(&samples.len()), "{samples:?}");
    assert!(samples.iter().all(|s| s["queue"] == "up" && s["p_m"].is_number()), "{samples:?}");
}

/// A link that signals each packet with probability 0.2 marks the datagrams that are ECN-capable and
/// drops the others. Of 625 sent in 1.5 s (5 Mb/s × 1.5 s / 12 kbit) the share is 0.2 ± 0.016.
#[test]
fn datagrams_are_counted_at_both_ends() {
    if !allowed() {
        return;
    }
    let options = "testbed --rate 20mbit --delay 2ms --aqm bernoulli --param p=0.2 \
                   --param ecn=true --down-aqm droptail --ecn --udp 5mbit,ect --udp 5mbit \
                   --duration 2s --warmup 500ms";
    let output = gateway(options, &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    let flows = measured["flows"].as_array().unwrap();
    let kinds: Vec<_> = flows.iter().map(|f| (&f["flow"], &f["transport"])).collect();
    let [tcp, cbr] = ["tcp", "cbr"].map(Value::from);
    assert_eq!(kinds, [(&0.into(), &tcp), (&1.into(), &cbr), (&2.into(), &cbr)]);
    for (ect, cbr) in [(true, &flows[1]), (false, &flows[2])] {
        let [sent, received, marked] =
            ["sent", "received", "marked"].map(|k| cbr[k].as_u64().unwrap());
        assert!((400..850).contains(&sent), "{cbr}");
        // What was on its way as the window began or ended.
        let lost = sent.saturating_sub(received);
        let (signalled, other) = if ect { (marked, lost) } else { (lost, marked) };
        assert!((sent / 10..sent * 3 / 10).contains(&signalled), "{cbr}");
        assert!(other <= sent / 20, "{cbr}");
    }
}

/// Both interfaces go down and come back, one after the other, while TCP sends: what could not be
/// sent meanwhile is counted, and then packets flow as before.
#[test]
fn an_interface_may_go_down_and_come_back() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let (_, [up, down]) = between_interfaces("flap.sh", plane, "--buffer 30kB");
        assert_eq!((&up["conserved"], &down["conserved"]), (&true.into(), &true.into()));
        assert!(up["refused"].as_u64().unwrap() > 0, "{plane}: {up}");
        assert!(up["departures"].as_u64().unwrap() > 500, "{plane}: {up}");
    }
}

#[test]
fn an_interface_that_is_removed_ends_the_gateway() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let output = while_running(plane, &format!("--plane {plane}"), "ip link del lan");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{plane}: {errors}");
        assert!(errors.contains("an interface is gone"), "{plane}: {errors}");
    }
}

/// Another one with the number and the name of the one that was removed is another one.
#[test]
fn an_interface_that_is_replaced_ends_the_gateway() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let replace = "number=$(ip -o link show lan | cut -d: -f1)
            printf 'link del lan\nlink add lan index %s type veth peer name x\n' $number | ip -batch -
            sleep 2; kill -INT $run 2>&-";
        let output = while_running(plane, &format!("--plane {plane}"), replace);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{plane}: {errors}");
        assert!(errors.contains("an interface is gone"), "{plane}: {errors}");
    }
}

/// A log that may not grow any more costs records, not the gateway.
#[test]
fn a_limit_of_a_file_costs_records() {
    if !allowed() {
        return;
    }
    let log = scratch("log");
    let script = format!(
        "ulimit -f 8; exec {GATEWAY} shell --rate 1mbit --interval 1ms --log {} -- sleep 1",
        log.display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("File too large"), "{errors}");
    let length = fs::metadata(&log).unwrap().len();
    assert!((1..=8192).contains(&length), "{length} bytes");
    _ = fs::remove_file(&log);
}

/// A name that is taken is said before a file is touched, and a file that is written is left alone.
#[test]
fn a_refused_start_empties_no_file() {
    if !allowed() {
        return;
    }
    let (log, kept) = (scratch("log"), scratch("kept"));
    fs::write(&kept, "kept").unwrap();
    let name = format!("first-{}", std::process::id());
    let mut first = waiting(&name, &log);
    let refused = |options: String, words: &str| {
        let output = gateway(&format!("shell --rate 1mbit {options}"), &["true"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(words), "{errors}");
    };
    refused(format!("--name {name} --log {}", kept.display()), "is running");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
    let twice = "something else is being written there";
    refused(format!("--log {}", log.display()), twice);
    assert!(fs::metadata(&log).unwrap().len() > 0);
    refused(format!("--log {0} --record {0}", kept.display()), twice);
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    [log, kept].iter().for_each(|file| _ = fs::remove_file(file));
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
fn an_interface_that_cannot_be_used_is_named() {
    for (options, words) in
        [("--lan no-such-if --wan lo", "ip -br link"), ("--lan lo --wan lo", "same interface")]
    {
        let output = gateway(&format!("run --rate 1mbit {options}"), &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(words), "{errors}");
    }
}

#[test]
fn what_is_wrong_is_said_before_anything_starts() {
    let marker = scratch("started");
    let touch = ["touch", marker.to_str().unwrap()];
    for (options, words) in [
        ("--rate 10mbps", "tc reads a lowercase bps"),
        ("--rate 10mbit --aqm bleu", "droptail"),
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

/// Whether `condition` comes true within some seconds.
fn soon(condition: impl Fn() -> bool) -> bool {
    (0..250).any(|_| {
        thread::sleep(Duration::from_millis(20));
        condition()
    })
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

#[test]
fn a_rate_beyond_the_machine_is_said() {
    if !allowed() {
        return;
    }
    let output = gateway("shell --rate 100gbit --quiet", &["true"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("25000000 packets/s"));
    let output = gateway("shell --rate 1mbit --quiet", &["true"]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// While TCP sends, rate, buffer and queue discipline change from within the shell; counts go on as
/// if nothing had happened, and a change that cannot be changes nothing.
#[test]
fn links_change_while_they_carry_packets() {
    if !allowed() {
        return;
    }
    let log = scratch("log");
    let name = format!("change-{}", std::process::id());
    let script = format!(
        "g={GATEWAY}; test $BLUEWATER_NAME = {name} || exit 9
        $g bulk 100.64.0.2 --flows 4 --time 3s --congestion reno & sleep 1
        $g ctl {name} set --way up --rate 20mbit --aqm sfb --param increment=0.01 || exit 3
        $g ctl {name} set --delay 2ms --buffer 60kB || exit 4
        $g ctl {name} set --aqm bleu && exit 5
        $g ctl {name} set --way up --param no=1 && exit 6
        sleep 1; $g ctl {name} show || exit 7; wait"
    );
    let mut gateway = Command::new(GATEWAY);
    gateway.args(["shell", "--quiet", "--name", &name, "--log", log.to_str().unwrap()]);
    gateway.args("--rate 8mbit --delay 5ms --buffer 40kB --aqm red --ecn --far".split(' '));
    gateway.arg(format!("{GATEWAY} sink"));
    let output = gateway.args(["--", "sh", "-c", &script]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {errors}", output.status);
    assert!(errors.contains("no queue discipline is called bleu"), "{errors}");
    assert!(errors.contains("sfb has no parameter no"), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    let shown: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let [up, down] = [&shown["queues"][0], &shown["queues"][1]];
    for (key, value) in [("rate", "20mbit"), ("delay", "2ms"), ("buffer", "60000B"), ("aqm", "sfb")]
    {
        assert_eq!(up[key], value, "{up}");
    }
    assert_eq!((&up["params"]["increment"], &down["rate"]), (&"0.01".into(), &"8mbit".into()));
    assert_eq!((&up["conserved"], &down["conserved"]), (&true.into(), &true.into()));
    let (lines, [summary, _]) = read(&log);
    assert_eq!(lines.iter().filter(|l| l.get("change").is_some()).count(), 2);
    assert!(summary["arrivals"].as_u64() >= up["arrivals"].as_u64());
    // More than 8 Mb/s would have been, in all but the first second.
    assert!(summary["throughput_bps"].as_f64().unwrap() > 8.5e6, "{summary}");
}

/// A shell that runs until its input ends.
fn waiting(name: &str, log: &Path) -> Child {
    let shell = Command::new(GATEWAY)
        .args(["shell", "--rate", "8mbit", "--quiet", "--name", name, "--log"])
        .args([log.to_str().unwrap(), "--", "cat"])
        .stdin(Stdio::piped())
        .spawn();
    assert!(soon(|| gateway(&format!("ctl {name} show"), &[]).status.success()));
    shell.unwrap()
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

#[test]
fn a_gateway_that_is_not_there_is_said() {
    let output = gateway("ctl not-there show", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("no gateway called not-there is running"), "{errors}");
}

/// What comes back for `request` from what the gateway says of its metrics.
fn http(url: &str, request: &str) -> String {
    let address = url.trim().strip_prefix("metrics: http://").unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    // A connection that is cut off may be so while it is being written to.
    _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn metrics_are_served_on_loopback_while_it_runs() {
    if !allowed() {
        return;
    }
    let script = format!("{GATEWAY} bulk 100.64.0.2 --flows 2 --time 2s; cat");
    let mut gateway = Command::new(GATEWAY)
        .args("shell --quiet --metrics 0 --rate 8mbit --aqm blue --ecn --far".split(' '))
        .arg(format!("{GATEWAY} sink"))
        .args(["--", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(gateway.stderr.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap();
    thread::sleep(Duration::from_millis(1900));
    let answer = http(&url, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let value = |name: &str| -> f64 {
        let line = answer.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default();
        line.trim().parse().unwrap_or_else(|_| panic!("{name} in {answer}"))
    };
    let way = "{queue=\"up\"}";
    assert!(value(&format!("bluewater_departures_total{way}")) > 100.0);
    assert!((0.0..=1.0).contains(&value("bluewater_signal{queue=\"up\",name=\"p_m\"}")));
    assert_eq!(value(&format!("bluewater_conserved{way}")), 1.0);
    assert!(answer.ends_with("# EOF\n"));
    assert!(http(&url, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert_eq!(http(&url, &"x".repeat(5000)), "", "too long: cut off");
    drop(gateway.stdin.take());
    assert!(gateway.wait().unwrap().success());
}

/// One packet in ten with what became of it; as many with a comment as were dropped or marked, by
/// and large. The file's own structure is tested beside its writer.
#[test]
fn a_sample_of_packets_is_written_with_its_fate() {
    if !allowed() {
        return;
    }
    let file = scratch("pcapng");
    let options = format!(
        "--rate 8mbit --ecn --aqm bernoulli --param p=0.5 --param ecn=true --down-aqm droptail \
         --pcapng {} --sample 10",
        file.display()
    );
    let (_, _, [up, down]) = bulk(&options, "100.64.0.2", 16, 2);
    let bytes = fs::read(&file).unwrap();
    let (mut packets, mut commented, mut at) = (0, 0, 0);
    while let Some(head) = bytes.get(at..at + 8) {
        let word = |i: usize| u32::from_le_bytes(head[i..i + 4].try_into().unwrap());
        let block = &bytes[at..at + word(4) as usize];
        packets += u64::from(word(0) == 6);
        let words = [&b"marked: early"[..], b"dropped: early"];
        commented += u64::from(words.iter().any(|w| block.windows(w.len()).any(|x| x == *w)));
        at += block.len();
    }
    assert_eq!(at, bytes.len(), "whole blocks");
    let count = |key: &str| up[key].as_u64().unwrap();
    let all = count("arrivals") + down["arrivals"].as_u64().unwrap();
    // Every tenth of each way, but for what was still on the way at the end.
    assert!(packets <= all / 10 + 2 && packets + 12 >= all / 10, "{packets} of {all}");
    let signalled = count("drops") + count("marks");
    assert!((signalled / 20..signalled / 5).contains(&commented), "{commented} of {signalled}");
    others_read(&file, packets as usize);
    _ = fs::remove_file(&file);
}

/// What tcpdump and Wireshark's tshark make of a capture of a shell's link: all of its packets, and
/// the latter their ways and comments, too.
fn others_read(file: &Path, packets: usize) {
    let run = |program: &str, arguments: &str| {
        let output = Command::new(program).args(arguments.split(' ')).arg(file).output();
        let Ok(output) = output else {
            _ = writeln!(std::io::stderr(), "SKIPPED {program}, which is not here");
            return None;
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program}: {errors}");
        Some(String::from_utf8(output.stdout).unwrap())
    };
    if let Some(text) = run("tcpdump", "-n -q -r") {
        assert_eq!(text.lines().count(), packets, "{text}");
    }
    let fields = "-T fields -e frame.packet_flags_direction -e frame.comment -r";
    if let Some(text) = run("tshark", fields) {
        let way = |number, name| {
            let mut lines = text.lines().filter(|l| l.starts_with(number)).peekable();
            let found = ["found ", " packets (", " B); here for "];
            lines.peek().is_some()
                && lines.all(|l| l.contains(name) && found.iter().all(|words| l.contains(words)))
        };
        assert!(way("0x00000002", ", up;") && way("0x00000001", ", down;"), "{text}");
        assert_eq!(text.lines().count(), packets);
    }
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
