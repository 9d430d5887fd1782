//! What must hold for any bytes at the gateway's sockets and in its recordings; shared by the property
//! tests and the fuzz targets.

use aqm::{CATALOG, Duration, Limit, Rate};
use gateway::control;
use gateway::link::Spec;
use gateway::record::{Allowed, Recorder, Recording, replay};

/// `bytes` as a line at the control socket: a request, or refused with a reason.
pub fn check_control(bytes: &[u8]) {
    if let Err(why) = control::parse(&String::from_utf8_lossy(bytes)) {
        assert!(!why.what.is_empty());
    }
}

/// `bytes` as they come at the ports of metrics and page, in parts: what is understood once does not change
/// with what comes behind it.
pub fn check_metrics(bytes: &[u8]) {
    let mut understood = None;
    for end in 0..=bytes.len().min(600) {
        let now = control::read(&bytes[..end]);
        assert!(understood.is_none() || now == understood, "{now:?} after {understood:?}");
        understood = now;
    }
}

/// `bytes` as a recording, of which the first says whether it has a good head of a discipline's: it is
/// replayed to its end, to where it breaks off, or to what is wrong, in bounded time and memory.
pub fn check_recording(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let mut file = Vec::new();
    if let Some(entry) = CATALOG.get(usize::from(first)) {
        let (delay, limit) = (Duration::from_millis(1), Limit::bytes(30_000).unwrap());
        let spec = Spec::new(Rate::from_mbit(10), delay, limit, entry.name);
        Recorder::new(&mut file, &[spec.clone(), spec]).unwrap();
    }
    file.extend_from_slice(rest);
    if let Ok(mut recording) = Recording::new(&file[..])
        && let Ok(replayed) =
            replay(&mut recording, Allowed { steps: 10_000, buffer: 10_000 }, None)
    {
        let arrived: u64 =
            replayed.queues.iter().flat_map(|q| &q.1).map(|s| s.counts.arrived.packets).sum();
        assert_eq!(arrived, replayed.arrivals);
    }
}
