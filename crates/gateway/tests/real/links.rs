//! What packets get at a link.

use super::*;

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
    at_once(["100.64.0.2", "fd64::2"], |to| {
        let (_, _, [up, down]) = bulk(options, to, 16, 3);
        let count = |key: &str| up[key].as_u64().unwrap();
        assert!(count("marks") > 50, "{up}");
        // Only what has no data is not ECN-capable: SYNs, and what is sent again, and all of a connection whose
        // SYN was lost, which chance makes many or few: 5 to 16 depart for one that is dropped. Were nothing
        // ECN-capable, it would be one.
        assert!(count("departures") > 2 * count("drops"), "{up}");
        assert!(down["departures"].as_u64().unwrap() > 50, "acknowledgements: {down}");
    });
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

/// What a testbed with these options measures.
fn testbed(options: &str) -> Value {
    let output = gateway(&format!("testbed {options}"), &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A measurement over a window of a second, after a warm-up of one.
#[test]
fn the_testbed_measures_a_window() {
    if !allowed() {
        return;
    }
    let options = "--rate 10mbit --delay 2ms --buffer 50kB --aqm blue --ecn --sack false \
                   --flows 6 --duration 2s --warmup 1s --interval 250ms";
    let measured = testbed(options);
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
    let options = "--rate 20mbit --delay 2ms --aqm bernoulli --param p=0.2 \
                   --param ecn=true --down-aqm droptail --ecn --udp 5mbit,ect --udp 5mbit \
                   --duration 2s --warmup 500ms";
    let measured = testbed(options);
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

/// 5 Mb/s of datagrams before a policer of 2 Mb/s: what passes in a window is at most its rate and a burst,
/// on a busy machine less; all that is missing was policed. It can be changed, and taken away.
#[test]
fn a_policer_lets_its_rate_pass() {
    if !allowed() {
        return;
    }
    let options = "--rate 20mbit --flows 0 --udp 5mbit --policer 2mbit --policer-burst 15kB \
                   --down-policer none --duration 2s --warmup 500ms";
    let measured = testbed(options);
    let up = &measured["queues"][0];
    let number = |key: &str| up[key].as_f64().unwrap();
    let most = 2e6 * number("measured_s") + 8.0 * 15_000.0;
    let passed = 8.0 * number("departures_bytes");
    assert!((most / 4.0..=most).contains(&passed), "{passed} of {most} bit: {up}");
    assert!(number("drops_policed") > 100.0, "{up}");
    assert_eq!(up["drops"], up["drops_policed"], "{up}");

    let log = scratch("log");
    let flood = "python3 -c '
import socket, sys
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(300):
    udp.sendto(bytes(972), (\"100.64.0.2\", 9))
'";
    let script = format!(
        "g=\"{GATEWAY} ctl $BLUEWATER_NAME\"
         {flood}; sleep 0.3; $g show
         $g set --policer-burst 1200B >&- || exit 11; {flood}; sleep 0.3; $g show
         $g set --policer none >&- || exit 12; {flood}; sleep 0.3; $g show
         $g set --policer-burst 9kB && exit 13; true"
    );
    let output = Command::new(GATEWAY)
        .args("shell --quiet --rate 100mbit --policer 10kbit --policer-burst 15kB --log".split(' '))
        .arg(&log)
        .args(["--buffer", "1000p", "--", "sh", "-c", &script])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("--policer-burst 9kB: there is no policer"), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    let shown: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let policed =
        shown.iter().map(|state| state["queues"][0]["drops"]["policed"].as_u64().unwrap());
    let policed: Vec<u64> = policed.collect();
    // Of each 300 packets of 1000 bytes a burst passes, of 15 or one, and what 10 kbit/s let pass meanwhile.
    assert!((280..=285).contains(&policed[0]), "{policed:?}");
    assert!((297..=299).contains(&(policed[1] - policed[0])), "{policed:?}");
    assert_eq!(policed[2], policed[1]);
    let policers: Vec<_> =
        shown.iter().map(|state| &state["queues"][0]["policer"]["burst"]).collect();
    assert_eq!(policers, [&Value::from("15kB"), &Value::from("1200B"), &Value::Null]);
    let (_, [summary, _]) = read(&log);
    assert_eq!(summary["drops_policed"], policed[2], "{summary}");
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
