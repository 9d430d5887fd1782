//! A session at its edges, with sockets in place of interfaces.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread::sleep;

use aqm::{Duration, Limit, Rate};
use tempfile::TempDir;

use super::*;
use crate::control::place::{self, Folder};
use crate::frame::Layer;
use crate::namespace::ends::End;
use crate::privilege::RealTime;
use crate::record::{Allowed, Recording, replay};

const MS: u64 = 1_000_000;

/// A session, and what is beyond its ports.
struct Bench {
    session: Session,
    lan: Port,
    wan: Port,
    waker: UnixStream,
    wake: UnixStream,
}

fn spec(aqm: &str) -> Spec {
    Spec::new(Rate::from_mbit(1000), Duration::ZERO, Limit::packets(10).unwrap(), aqm)
}

/// Nothing is written, at ordinary priority.
fn quiet() -> Forwarding {
    Forwarding { realtime: RealTime::Off, ..Forwarding::silent() }
}

impl Bench {
    fn new(specs: &[Spec; 2], how: &Forwarding, layer: Layer) -> Result<Self, Trouble> {
        let [(near, lan), (far, wan)] = [(); 2].map(|()| Port::pair(layer).unwrap());
        let ports =
            Ports { ends: [near, far], longest: 1514, fallback: None, warnings: Vec::new() };
        let (waker, wake) = UnixStream::pair().unwrap();
        Ok(Self { session: Session::new(specs, how, ports)?, lan, wan, waker, wake })
    }

    fn plain(how: &Forwarding) -> Self {
        Self::new(&[spec("droptail"), spec("droptail")], how, Layer::Ip).unwrap()
    }

    /// Sends packets up and waits until they have come out.
    fn carry(&mut self, lengths: &[usize]) {
        for &length in lengths {
            let mut packet = vec![0; length];
            packet[0] = 0x45;
            packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            assert!(self.lan.send(&packet));
        }
        let (mut came, end) = (Vec::new(), self.session.now() + 5000 * MS);
        while came.len() < lengths.len() && self.session.now() < end {
            let until = self.session.now() + MS;
            assert_eq!(self.session.forward(until, &self.waker).unwrap(), Pause::Time);
            while self.wan.receive(|frame| came.push(frame.len())).unwrap() {}
        }
        assert_eq!(came, lengths);
    }

    /// What comes of requests that wait.
    fn ask(&mut self, requests: Vec<Request>) -> Vec<Result<Value, Trouble>> {
        let (send, inbox) = channel();
        self.session.inbox = Some(inbox);
        let ask = |request| {
            let (asked, answered) = Asked::new(request);
            send.send(asked).unwrap();
            answered
        };
        let answered: Vec<_> = requests.into_iter().map(ask).collect();
        self.session.answer().unwrap();
        while self.session.gathering.go_on(&self.session.forwarder.links) {}
        answered.iter().map(|answered| answered.try_recv().unwrap().map(Told::written)).collect()
    }

    fn set(&mut self, change: &str) -> Result<Value, Trouble> {
        let request = control::parse(&format!(r#"{{"set": {change}}}"#)).unwrap();
        self.ask(vec![request]).pop().unwrap()
    }

    fn specs(&self) -> [Spec; 2] {
        self.session.forwarder.links.each_ref().map(|link| link.spec().clone())
    }
}

fn lines(log: &Path) -> Vec<Value> {
    fs::read_to_string(log).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// A folder, and how to forward with a log in it each `interval` (ns).
fn logging(interval: u64) -> (TempDir, Forwarding) {
    let folder = TempDir::new().unwrap();
    let log = Some(folder.path().join("log"));
    (folder, Forwarding { log, interval, ..quiet() })
}

#[test]
fn a_sample_tells_of_the_time_since_the_last_and_a_summary_of_the_window() {
    let mut bench = Bench::plain(&quiet());
    bench.carry(&[100, 200, 300]);
    let arrivals = |samples: &[Value; 2]| samples.each_ref().map(|s| s["arrivals"].clone());
    assert_eq!(arrivals(&bench.session.sample()), [3, 0]);
    bench.carry(&[400]);
    assert_eq!(arrivals(&bench.session.sample()), [1, 0]);
    let [none, _] = bench.session.sample();
    assert_eq!((&none["arrivals"], &none["delay_mean_s"]), (&0.into(), &Value::Null));
    bench.carry(&[600, 700]);
    let [two, _] = bench.session.sample();
    // Each of its own time in the queue, not what is queued over a rate.
    let [up, down] = bench.session.summaries([7, 8]);
    assert_eq!(
        (&up["queue"], &up["departures"], &up["lost_before"]),
        (&"up".into(), &6.into(), &7.into())
    );
    let mean = two["delay_mean_s"].as_f64().unwrap();
    assert!((0.0..1.0).contains(&mean), "{mean}");
    assert_eq!((&down["departures"], &down["lost_before"]), (&0.into(), &8.into()));
    bench.session.restart_measurement();
    bench.carry(&[500]);
    assert_eq!(bench.session.summaries([0; 2])[0]["departures"], 1);
    assert_eq!(bench.session.pace()[0].packets(), 1);
    assert!(bench.session.conserved() && !bench.session.realtime());
    assert_eq!(bench.session.overrun(), [0; 2]);
}

/// The head, a sample each interval, one more at the end, the summary.
#[test]
fn the_log_has_a_sample_each_interval_and_one_at_the_end() {
    let (folder, how) = logging(200 * MS);
    let mut bench = Bench::plain(&how);
    bench.carry(&[100]);
    assert_eq!(bench.session.forward(300 * MS, &bench.waker).unwrap(), Pause::Time);
    let finished = bench.session.finish([0; 2]);
    assert!(finished.conserved && finished.unwritten.is_empty());
    assert_eq!(finished.specs, [spec("droptail"), spec("droptail")]);
    let lines = lines(&folder.path().join("log"));
    assert_eq!(
        (lines[0]["log"].as_str(), lines[0]["plane"].as_str()),
        (Some("bluewater-gateway"), Some("tun"))
    );
    let queues: Vec<_> = lines[1..5].iter().map(|l| l["queue"].as_str().unwrap()).collect();
    assert_eq!(queues, ["up", "down", "up", "down"]);
    assert!(lines[1]["time_s"].as_f64() >= Some(0.2) && lines[3]["time_s"].as_f64() >= Some(0.3));
    let sum: u64 = lines[1..5].iter().map(|line| line["arrivals"].as_u64().unwrap()).sum();
    assert_eq!(sum, 1);
    let last = &lines[5];
    assert_eq!(
        (&last["summary"][0]["departures"], &last["lost_records"]["log"]),
        (&1.into(), &0.into())
    );
    let hash = |summary: &Value| summary["decision_hash"].clone();
    assert_eq!(hash(&last["summary"][0]), hash(&finished.summaries[0]));
    assert_eq!(lines.len(), 6);
}

/// A thread that was kept from running does not make up for what it missed.
#[test]
fn samples_that_are_overdue_are_left_out() {
    let (folder, how) = logging(MS);
    let mut bench = Bench::plain(&how);
    sleep(std::time::Duration::from_millis(20));
    bench.session.forward(0, &bench.waker).unwrap();
    assert!(
        (20 * MS..=bench.session.now()).contains(&bench.session.next),
        "{}",
        bench.session.next
    );
    bench.session.finish([0; 2]);
    // The head, one sample of both ways for twenty, the last, and the summary.
    assert_eq!(lines(&folder.path().join("log")).len(), 6);
}

#[test]
fn without_a_log_nothing_is_due() {
    let mut bench = Bench::plain(&quiet());
    bench.session.forward(MS, &bench.waker).unwrap();
    assert_eq!(bench.session.next, u64::MAX);
    assert!(bench.session.lost().is_empty());
    // Whether the interfaces are there is looked at now and then.
    bench.session.look = 0;
    bench.session.forward(0, &bench.waker).unwrap();
    assert!((LOOK..=LOOK + bench.session.now()).contains(&bench.session.look));
}

/// It is asked whether that is all whenever it is woken; what woke it is gone then.
#[test]
fn a_run_ends_when_it_is_woken_and_told_so() {
    let mut bench = Bench::plain(&quiet());
    let mut asked = 0;
    bench.wake.write_all(&[1]).unwrap();
    let ended = || {
        asked += 1;
        bench.wake.write_all(&[0; 1][asked - 1..]).unwrap();
        asked == 2
    };
    bench.session.run(&bench.waker, ended).unwrap();
    assert_eq!(asked, 2);
    bench.waker.set_nonblocking(true).unwrap();
    assert!((&bench.waker).read(&mut [0; 8]).is_err());
}

#[test]
fn every_question_that_waits_is_answered() {
    let mut bench = Bench::plain(&quiet());
    bench.carry(&[100, 200]);
    let join = Request::Join { end: End::Near };
    let answers = bench.ask(vec![Request::Show { classes: false }, Request::Watch {}, join]);
    let (shown, watched) = (answers[0].as_ref().unwrap(), answers[1].as_ref().unwrap());
    assert_eq!(
        (&shown["queues"][0]["arrivals"], &shown["queues"][1]["arrivals"]),
        (&2.into(), &0.into())
    );
    assert!(shown["time_s"].as_f64() > Some(0.0) && shown["queues"][0].get("delays").is_none());
    assert!(watched["queues"][0]["delays"].is_array());
    assert!(answers[2].as_ref().unwrap_err().what.contains("not for the link"));
    // The caller may be gone.
    let (send, inbox) = channel();
    send.send(Asked::new(Request::Show { classes: false }).0).unwrap();
    // Then nothing is done for it.
    let (given_up, answered) = Asked::new(Request::Show { classes: false });
    assert!(given_up.take());
    send.send(given_up).unwrap();
    bench.session.inbox = Some(inbox);
    bench.session.answer().unwrap();
    assert!(answered.try_recv().is_err());
}

/// The forwarding thread copies counts of classes, a few at a time; the thread that asks writes them.
#[test]
fn counts_of_classes_are_written_by_who_asks() {
    let leaf = |n| format!("[[class]]\nname = \"c{n}\"\nparent = \"a\"\nrate = \"8mbit\"\n");
    let leaves: String = (0..300).map(leaf).collect();
    let tree = format!("default = \"c0\"\n[[class]]\nname = \"a\"\nrate = \"80mbit\"\n{leaves}");
    let tree = scenario::tree::TreeSpec::from_toml(&tree, "x").unwrap();
    let classes = Some(std::sync::Arc::new(crate::link::Classes { tree, down: false }));
    let up = Spec { classes, ..spec("droptail") };
    let mut bench = Bench::new(&[up, spec("droptail")], &quiet(), Layer::Ip).unwrap();
    bench.carry(&[100, 200]);
    for (classes, expected) in [(false, 10), (true, 301)] {
        let (send, inbox) = channel();
        let (asked, answered) = Asked::new(Request::Show { classes });
        send.send(asked).unwrap();
        bench.session.inbox = Some(inbox);
        bench.session.answer().unwrap();
        // 128, 128 and 45 of 301 classes, between packets.
        for _ in 0..3 {
            assert!(answered.try_recv().is_err());
            bench.session.forward(0, &bench.waker).unwrap();
        }
        let told = answered.try_recv().unwrap().unwrap();
        assert!(told.value["queues"][0].get("classes").is_none());
        let written = told.written();
        let counts = &written["queues"][0]["classes"]["departures"];
        assert_eq!(counts.as_object().unwrap().len(), expected);
        assert_eq!((&counts["a"], &counts["c0"]), (&2.into(), &2.into()));
        assert!(written["queues"][1].get("classes").is_none());
    }
}

/// `increment` is a parameter of BLUE alone: the way up is not changed either.
#[test]
fn both_links_are_changed_or_neither() {
    let (folder, how) = logging(u64::MAX);
    let mut bench = Bench::new(&[spec("blue"), spec("red")], &how, Layer::Ip).unwrap();
    let before = bench.specs();
    let trouble = bench.set(r#"{"params": {"increment": "0.01"}, "delay": "5ms"}"#).unwrap_err();
    assert!(trouble.to_string().contains("increment"), "{trouble}");
    assert_eq!(bench.specs(), before);
    let answer = bench.set(r#"{"way": "down", "delay": "5ms"}"#).unwrap();
    assert_eq!(
        (&answer["queues"][0]["delay"], &answer["queues"][1]["delay"]),
        (&"0s".into(), &"5ms".into())
    );
    let [up, down] = bench.specs();
    assert_eq!((&up, down.delay), (&before[0], Duration::from_millis(5)));
    bench.session.finish([0; 2]);
    let lines = lines(&folder.path().join("log"));
    let changes: Vec<_> = lines.iter().filter(|line| line.get("change").is_some()).collect();
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0]["change"][1]["delay"], "5ms");
}

/// An overhead is one on IP packets: of Ethernet's frames the header is counted already.
#[test]
fn an_overhead_counts_from_ip_packets_on() {
    let mut given = spec("droptail");
    given.sending.framing = "44".parse().unwrap();
    for (layer, less) in [(Layer::Ip, 0), (Layer::Ethernet, 14)] {
        let (folder, how) = logging(u64::MAX);
        let mut bench = Bench::new(&[given.clone(), spec("droptail")], &how, layer).unwrap();
        let overheads = |bench: &Bench| bench.specs().map(|spec| spec.counted().framing.overhead);
        assert_eq!(overheads(&bench), [Some(44 - less), None]);
        let answer = bench.set(r#"{"overhead": "20", "mpu": 64, "way": "down"}"#).unwrap();
        assert_eq!(overheads(&bench), [Some(44 - less), Some(20 - less)]);
        assert_eq!(bench.specs().map(|spec| spec.sending.framing.mpu), [0, 64]);
        assert_eq!(answer["queues"][1]["framing"], "overhead 20 mpu 64 noatm");
        bench.session.finish([0; 2]);
        let lines = lines(&folder.path().join("log"));
        assert_eq!(lines[0]["queues"][0]["framing"], "overhead 44 mpu 0 noatm", "{layer:?}");
        assert_eq!(lines[1]["change"][1]["framing"], "overhead 20 mpu 64 noatm", "{layer:?}");
    }
}

/// A recording replays; it has to be complete, so nothing may change meanwhile.
#[test]
fn a_recording_holds_every_arrival_and_forbids_changes() {
    let (folder, mut how) = logging(u64::MAX);
    let path = |name: &str| folder.path().join(name);
    (how.record, how.pcapng) = (Some(path("record")), Some((path("pcapng"), 1)));
    let mut bench = Bench::plain(&how);
    bench.carry(&[100, 200, 300]);
    let trouble = bench.set(r#"{"delay": "5ms"}"#).unwrap_err();
    assert!(trouble.what.contains("recorded") && trouble.hint.contains("--record"), "{trouble}");
    let lost: Vec<_> = bench.session.lost().into_iter().collect();
    assert_eq!(lost, ["capture", "log", "recording"].map(|file| (file.into(), json!(0))));
    let finished = bench.session.finish([0; 2]);
    assert_eq!(finished.unwritten, []);
    let bytes = fs::read(path("record")).unwrap();
    let mut recording = Recording::new(&bytes[..]).unwrap();
    let allowed = Allowed { steps: 1000, buffer: 1000 };
    let replayed = replay(&mut recording, allowed, None).unwrap();
    assert_eq!(replayed.arrivals, 3);
    // 600 bytes of packets, and their headers in the file.
    assert!(fs::metadata(path("pcapng")).unwrap().len() > 600);
}

/// A mean over two rates can be more than the link's rate now; the report has the mean at each rate.
#[test]
fn a_summary_tells_the_settings_apart() {
    let plain = Bench::plain(&quiet()).session.finish([0; 2]);
    assert!(
        plain.summaries[0]["settings"].is_null() && !report::table(&plain).contains("settings")
    );
    let mut bench = Bench::plain(&quiet());
    bench.carry(&[1000, 1000]);
    bench.set(r#"{"way": "up", "rate": "20mbit"}"#).unwrap();
    bench.carry(&[500]);
    let finished = bench.session.finish([0; 2]);
    let [up, down] = &finished.summaries;
    assert!(down["settings"].is_null());
    let settings = up["settings"].as_array().unwrap();
    let rates: Vec<_> = settings.iter().map(|era| era["rate"].as_str().unwrap()).collect();
    assert_eq!(rates, ["1gbit", "20mbit"]);
    let number = |era: &Value, key: &str| era[key].as_f64().unwrap();
    let bytes = settings.iter().map(|era| {
        let seconds = number(era, "until_s") - number(era, "from_s");
        (number(era, "throughput_bps") * seconds / 8.0).round()
    });
    assert_eq!(bytes.collect::<Vec<_>>(), [2000.0, 500.0]);
    assert_eq!(settings[0]["until_s"], settings[1]["from_s"]);
    let text = report::table(&finished);
    assert!(text.contains("settings changed") && text.contains(", 1gbit 0s droptail: "), "{text}");
}

/// A slider makes many changes.
#[test]
fn of_many_settings_the_last_are_told() {
    let mut bench = Bench::plain(&quiet());
    for rate in 1..=20 {
        bench.set(&format!(r#"{{"rate": "{rate}mbit"}}"#)).unwrap();
    }
    let finished = bench.session.finish([0; 2]);
    let [up, _] = &finished.summaries;
    let settings = up["settings"].as_array().unwrap();
    assert_eq!((settings.len(), &settings[8]["rate"]), (9, &"20mbit".into()));
    assert_eq!(up["settings_before"], 12);
    assert!(report::table(&finished).contains("12 settings before these"));
}

/// The packets go on where a disk is full, and the summary counts what is missing.
#[test]
fn what_could_not_be_written_is_told_at_the_end() {
    let how = Forwarding { log: Some("/dev/full".into()), ..quiet() };
    let mut bench = Bench::plain(&how);
    bench.carry(&[100]);
    let finished = bench.session.finish([0; 2]);
    let [unwritten] = &finished.unwritten[..] else { panic!("{:?}", finished.unwritten) };
    assert_eq!((unwritten.file, unwritten.records), ("log", 4));
    assert!(unwritten.why.contains("space"), "{}", unwritten.why);
    assert_eq!(finished.summaries[0]["departures"], 1);
}

#[test]
fn what_cannot_be_begun_is_said() {
    let refused = |specs: [Spec; 2], how: &Forwarding| {
        Bench::new(&specs, how, Layer::Ip).err().unwrap().to_string()
    };
    let text = refused([spec("droptail"), spec("bleu")], &quiet());
    assert!(text.contains("bleu") && text.contains("blue"), "{text}");
    let (_folder, mut how) = logging(u64::MAX);
    how.record.clone_from(&how.log);
    let text = refused([spec("droptail"), spec("droptail")], &how);
    assert!(text.contains("something else is being written there"), "{text}");
}

/// By name, and else by a number that is free.
#[test]
fn doors_have_a_name_of_their_own() {
    let specs = [spec("droptail"), spec("droptail")];
    let name = format!("session-{}", std::process::id());
    let how = Forwarding { name: Some(name.clone()), metrics: Some(0), ..quiet() };
    let doors = Doors::open(&how, &specs).unwrap();
    assert_eq!((doors.name(), &doors.about), (&*name, &json!({"name": name, "recorded": false})));
    let trouble = Doors::open(&how, &specs).err().unwrap();
    assert!(trouble.what.contains(&name), "{trouble}");
    let record = Some("x".into());
    let free = Doors::open(&Forwarding { record, ..quiet() }, &specs).unwrap();
    assert_eq!(free.about["recorded"], true);
    assert!(free.name().parse::<u32>().is_ok(), "{}", free.name());
    // Their sockets go with them.
    let free_name = free.name().to_owned();
    drop((doors, free));
    let folders = place::candidates(nix::unistd::geteuid())
        .into_iter()
        .filter_map(|f| Folder::open(&f, nix::unistd::geteuid(), false).ok()?);
    for file in folders.flat_map(|folder| folder.names()) {
        assert!(![&name, &free_name].map(|name| format!("{name}.sock")).contains(&file), "{file}");
    }
}
