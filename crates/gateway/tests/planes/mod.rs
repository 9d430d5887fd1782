//! Whether frames can come and go by AF_XDP here, asked of the kernel and not of the gateway: where they
//! can the gateway's plane has to work, so that a broken one does not pass for one that is not there.

use std::env;
use std::io::Write as _;
use std::process::Command;

use caps::{CapSet, Capability};

/// Set where a machine is not to have AF_XDP; in continuous integration (`CI`) it has to be said.
const WITHOUT: &str = "BLUEWATER_NO_XDP";

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
    let set = |name| env::var_os(name).is_some();
    match is_tried(lacking(), set(WITHOUT), set("CI")) {
        Ok(()) => {
            work().unwrap_or_else(|e| panic!("this machine has AF_XDP, and it does not work: {e}"));
            true
        }
        Err(why) => {
            _ = writeln!(std::io::stderr(), "SKIPPED AF_XDP: {why}");
            false
        }
    }
}

/// Whether AF_XDP is tried where something is `lacking` or nothing; why not, if it may be left out.
fn is_tried(lacking: Option<String>, without: bool, ci: bool) -> Result<(), String> {
    assert!(lacking.is_some() || !without, "{WITHOUT} is set, and this machine has AF_XDP");
    let Some(why) = lacking else { return Ok(()) };
    assert!(
        without || !ci,
        "AF_XDP cannot be tried here: {why}; {WITHOUT}=1 says that it need not"
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
        std::panic::catch_unwind(|| is_tried(lacking, without, ci).is_ok()).ok()
    };
    for ci in [false, true] {
        assert_eq!(outcome(false, false, ci), Some(true));
        assert_eq!(outcome(false, true, ci), None);
        assert_eq!(outcome(true, true, ci), Some(false));
    }
    assert_eq!(outcome(true, false, false), Some(false));
    assert_eq!(outcome(true, false, true), None);
}
