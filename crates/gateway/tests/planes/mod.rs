//! What tests need of this machine that not every one has. In continuous integration (`CI`) it is there,
//! or a variable says that this machine is to do without: nothing is left out unnoticed.
//!
//! Whether frames can come and go by AF_XDP is asked of the kernel and not of the gateway: where they can
//! the gateway's plane has to work, so that a broken one does not pass for one that is not there.

use std::env;
use std::io::Write as _;
use std::process::Command;

use caps::{CapSet, Capability};

/// What root of the machine has, and root of a user namespace does not.
const RIGHTS: [Capability; 5] = [
    Capability::CAP_SYS_ADMIN,
    Capability::CAP_NET_ADMIN,
    Capability::CAP_NET_RAW,
    Capability::CAP_BPF,
    Capability::CAP_IPC_LOCK,
];

/// Whether AF_XDP is tried here. Where it can be it has to `work`.
pub fn has_xdp(work: impl FnOnce() -> Result<(), String>) -> bool {
    let there = is_there("AF_XDP", "BLUEWATER_NO_XDP", lacking());
    if there {
        work().unwrap_or_else(|e| panic!("this machine has AF_XDP, and it does not work: {e}"));
    }
    there
}

/// Whether `what` is tried here, for which something is `lacking` or nothing; `without` is set where a
/// machine is not to have it. What is left out is said past the test's capture.
pub fn is_there(what: &str, without: &str, lacking: Option<String>) -> bool {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let tried = is_tried([what, without], lacking, set(without), set("CI"));
    if let Err(why) = &tried {
        _ = writeln!(std::io::stderr(), "SKIPPED {what}: {why}");
    }
    tried.is_ok()
}

/// Whether something is tried for which something is `lacking` or nothing; why not, if it may be left
/// out.
fn is_tried(
    [what, variable]: [&str; 2],
    lacking: Option<String>,
    without: bool,
    ci: bool,
) -> Result<(), String> {
    assert!(lacking.is_some() || !without, "{variable} is set, and this machine has {what}");
    let Some(why) = lacking else { return Ok(()) };
    assert!(
        without || !ci,
        "{what} cannot be tried here: {why}; {variable}=1 says that it need not"
    );
    Err(why)
}

/// What this process or this kernel lacks for AF_XDP.
fn lacking() -> Option<String> {
    // Root of a user namespace has the same rights by name, over less.
    let everybody = std::fs::read_to_string("/proc/self/uid_map").unwrap();
    let everybody: Vec<&str> = everybody.split_whitespace().collect();
    if everybody != ["0", "0", "4294967295"] {
        return Some("this is a user namespace".into());
    }
    let has = |right: &Capability| caps::has_cap(None, CapSet::Effective, *right).unwrap();
    if let Some(right) = RIGHTS.iter().find(|right| !has(right)) {
        return Some(format!("no {right}"));
    }
    // Where the kernel has none, there is no socket of this family (44).
    let ask = "import socket; socket.socket(44, socket.SOCK_RAW)";
    let output = Command::new("unshare").args(["-n", "python3", "-c", ask]).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into()),
        Err(e) => Some(format!("unshare: {e}")),
    }
}

/// Only what nobody has is left out, and in continuous integration only what was said not to be there.
#[test]
fn a_plane_that_is_there_is_tried() {
    let outcome = |lacking: bool, without, ci| {
        let lacking = lacking.then(|| "no kernel".to_string());
        let tried = || is_tried(["a plane", "NO_PLANE"], lacking, without, ci).is_ok();
        std::panic::catch_unwind(tried).ok()
    };
    for ci in [false, true] {
        assert_eq!(outcome(false, false, ci), Some(true));
        assert_eq!(outcome(false, true, ci), None);
        assert_eq!(outcome(true, true, ci), Some(false));
    }
    assert_eq!(outcome(true, false, false), Some(false));
    assert_eq!(outcome(true, false, true), None);
}
