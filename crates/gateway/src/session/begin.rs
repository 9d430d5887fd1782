//! The links of a session, before its first packet.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::io::port::Ports;
use crate::link::{Link, Spec};
use crate::options::explain;
use crate::trouble::Trouble;

/// The links between `ports`; if that is wanted, with packets `held` back from that time on.
///
/// # Errors
/// When there can be no such links.
pub(super) fn links(
    specs: &[Spec; 2],
    ports: &Ports,
    held: Option<u64>,
) -> Result<[Link; 2], Trouble> {
    let link = |i: usize| {
        let (spec, layer, longest) = (&specs[i], ports.ends[i].layer(), ports.longest);
        let link = match held {
            Some(now) => Link::held(spec, layer, longest, now),
            None => Link::new(spec, layer, longest),
        };
        link.map_err(|e| explain(spec, e))
    };
    patiently(specs, "making the queues", || Ok([link(0)?, link(1)?]))
}

/// How long a start may take without a word.
const SILENT: Duration = Duration::from_secs(1);

/// Does something that takes long if there are many classes, and says so then.
pub(super) fn patiently<T>(specs: &[Spec; 2], doing: &str, act: impl FnOnce() -> T) -> T {
    let trees = specs.iter().flat_map(|spec| &spec.classes);
    match trees.map(|classes| classes.tree.class.len()).sum::<usize>() {
        0 => act(),
        n => noted(SILENT, || eprintln!("note: {doing} of {n} classes takes a while"), act),
    }
}

/// Calls `note` if `act` has not ended after a while.
fn noted<T>(most: Duration, note: impl FnOnce() + Send, act: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (ended, end) = channel::<()>();
        scope.spawn(move || {
            if end.recv_timeout(most) == Err(RecvTimeoutError::Timeout) {
                note();
            }
        });
        let done = act();
        drop(ended);
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_takes_long_is_noted() {
        for (takes, expected) in [(0, false), (200, true)] {
            let mut notes = 0;
            let act = || thread::sleep(Duration::from_millis(takes));
            noted(Duration::from_millis(50), || notes += 1, act);
            assert_eq!(notes == 1, expected, "{takes} ms");
        }
    }
}
