//! What is written while packets go.

use super::*;

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
            skipped(&format!("{program} is not here"));
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
