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

mod asking;
mod classes;
mod files;
mod interfaces;
mod links;
mod mistakes;
mod operator;
mod service;
mod shell;
mod upgrade;
mod uplink;

use crate::planes::has_xdp;

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
    let ci = std::env::var_os("CI").is_some_and(|set| !set.is_empty());
    assert!(!ci, "real packets cannot be tried here: {why}");
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

/// Each case in a thread: they wait most of the time.
fn at_once<T: Send>(cases: impl IntoIterator<Item = T>, check: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for case in cases {
            let check = &check;
            scope.spawn(move || check(case));
        }
    });
}

/// How frames come and go here.
fn planes() -> Vec<&'static str> {
    let works = || {
        let output = while_running("xdp", "--plane xdp", "kill -INT $run");
        output
            .status
            .success()
            .then_some(())
            .ok_or_else(|| String::from_utf8_lossy(&output.stderr).into())
    };
    if has_xdp(works) { vec!["packet", "xdp"] } else { vec!["packet"] }
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

/// Whether `condition` comes true within some seconds.
fn soon(condition: impl Fn() -> bool) -> bool {
    (0..250).any(|_| {
        thread::sleep(Duration::from_millis(20));
        condition()
    })
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
