//! Captures as a scenario wants them: the one place of the simulator that opens files.

use std::collections::HashMap;
use std::fs::File;
use std::path::{self, Path};

use aqm::Duration;
use link::DecisionHash;
use scenario::arrivals::{Arrival, Arrivals, SHORTEST_PACKET};
use scenario::{Scenario, ScenarioError};
use trace::Capture;

/// The most packets that are held; 16 bytes each.
pub const MAX_ARRIVALS: usize = 1 << 28;

/// Reads a scenario and the captures that it names. `file` names the text in errors, and captures
/// are looked for from its folder; from the working directory if it has none.
///
/// # Errors
/// See [`ScenarioError`].
pub fn scenario(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    Scenario::with_captures(text, file, &mut |name, until| {
        let found = path::absolute(folder.join(name)).map_err(|e| format!("{name}: {e}"))?;
        read(&found, until)
    })
}

/// Reads the packets of the file that come before `until`. Those shorter than any packet here are as
/// long as the shortest.
///
/// # Errors
/// What is wrong with the file, in words.
pub fn read(path: &Path, until: Duration) -> Result<Arrivals, String> {
    let file = path.display().to_string();
    let input = File::open(path).map_err(|e| format!("{file}: {e}"))?;
    let mut capture = Capture::new(input, &file).map_err(|e| e.to_string())?;
    let mut numbers = HashMap::new();
    let mut packets = Vec::new();
    let mut starts = Vec::new();
    let mut hash = DecisionHash::default();
    while let Some(packet) = capture.next_packet().map_err(|e| e.to_string())? {
        let time = packet.time;
        if time >= until.as_nanos() {
            break;
        }
        if packets.len() == MAX_ARRIVALS {
            return Err(format!("{file}: more than {MAX_ARRIVALS} packets"));
        }
        let len = u16::try_from(packet.len).map_err(|_| {
            let len = packet.len;
            format!("{file}: a packet of {len} bytes at {time} ns; 65535 are the most")
        })?;
        let flow = *numbers.entry(packet.headers.flow).or_insert_with(|| {
            starts.push(time);
            starts.len() as u32 - 1
        });
        let (len, ecn) = (len.max(SHORTEST_PACKET), packet.headers.ecn);
        hash.departure(time, flow, u32::from(len) << 2 | ecn as u32);
        packets.push(Arrival { time, flow, len, ecn });
    }
    Ok(Arrivals { packets: packets.into(), starts, digest: hash.to_string(), file })
}
