//! Captures and other files as a scenario wants them: the one place of the simulator that opens files.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{self, Path, PathBuf};

use aqm::{Duration, Label};
use link::DecisionHash;
use scenario::arrivals::{Arrival, Arrivals, Cable, Files, SHORTEST_PACKET, Text};
use scenario::text::{self, Network};
use scenario::{Scenario, ScenarioError};
use trace::Capture;

use crate::graphml;

/// The most packets that are held; 16 bytes each.
pub const MAX_ARRIVALS: usize = 1 << 28;

/// The longest text of a file, bytes: the largest that anything here reads has a million lines.
const LONGEST_TEXT: u64 = 1 << 26;

/// Reads a scenario and the files that it names. `file` names the text in errors, and files are looked
/// for from its folder; from the working directory if it has none.
///
/// # Errors
/// See [`ScenarioError`].
pub fn scenario(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
    let folder = Path::new(file).parent().map(Path::to_path_buf).unwrap_or_default();
    Scenario::with_files(text, file, &mut Disk { folder })
}

/// Files of this machine, from the folder of the scenario on.
struct Disk {
    folder: PathBuf,
}

impl Disk {
    fn find(&self, name: &str) -> Result<PathBuf, String> {
        path::absolute(self.folder.join(name)).map_err(|e| format!("{name}: {e}"))
    }
}

impl Files for Disk {
    fn capture(
        &mut self,
        file: &str,
        until: Duration,
        senders: &[text::Text<Network>],
    ) -> Result<Arrivals, String> {
        read(&self.find(file)?, until, senders)
    }

    fn text(&mut self, file: &str) -> Result<Text, String> {
        let path = self.find(file)?;
        let file = path.display().to_string();
        let text = text_of(&path).map_err(|e| format!("{file}: {e}"))?;
        Ok(Text { text, file })
    }

    fn graph(&mut self, file: &str) -> Result<(Vec<Cable>, String), String> {
        let Text { text, file } = self.text(file)?;
        let cables = graphml::read(&text).map_err(|e| format!("{file}: {e}"))?;
        Ok((cables, file))
    }
}

/// The text of a regular file: a pipe or a device may have no end, or wait for ever.
fn text_of(path: &Path) -> io::Result<String> {
    let wrong = |what: String| io::Error::other(what);
    let about = fs::metadata(path)?;
    if !about.is_file() {
        return Err(wrong("it is no regular file".into()));
    }
    if about.len() > LONGEST_TEXT {
        return Err(wrong(format!("{} bytes; {LONGEST_TEXT} are the most", about.len())));
    }
    let mut text = String::new();
    File::open(path)?.take(LONGEST_TEXT).read_to_string(&mut text)?;
    Ok(text)
}

/// Reads the packets of the file that come before `until` from one of the networks `senders`, or from any if
/// there are none. Those shorter than any packet here are as long as the shortest.
///
/// # Errors
/// What is wrong with the file, in words.
pub fn read(
    path: &Path,
    until: Duration,
    senders: &[text::Text<Network>],
) -> Result<Arrivals, String> {
    let file = path.display().to_string();
    let input = File::open(path).map_err(|e| format!("{file}: {e}"))?;
    let mut capture = Capture::new(input, &file).map_err(|e| e.to_string())?;
    let (mut numbers, mut hosts) = (HashMap::new(), HashMap::new());
    let mut packets = Vec::new();
    let (mut starts, mut labels) = (Vec::new(), Vec::new());
    let mut hash = DecisionHash::default();
    while let Some(packet) = capture.next_packet().map_err(|e| e.to_string())? {
        let time = packet.time;
        if time >= until.as_nanos() {
            break;
        }
        let source = &packet.headers.flow.source;
        if !senders.is_empty() && !senders.iter().any(|network| network.0.has(source)) {
            continue;
        }
        if packets.len() == MAX_ARRIVALS {
            return Err(format!("{file}: more than {MAX_ARRIVALS} packets"));
        }
        let len = u16::try_from(packet.len).map_err(|_| {
            let len = packet.len;
            format!("{file}: a packet of {len} bytes at {time} ns; 65535 are the most")
        })?;
        let (flow, dscp) = (packet.headers.flow, packet.headers.dscp);
        let mut number = |host| {
            let next = hosts.len();
            (*hosts.entry(host).or_insert(next) % usize::from(Label::HOSTS)) as u16
        };
        let flow = *numbers.entry(flow).or_insert_with(|| {
            let label = Label { dscp, host: number(flow.source), peer: number(flow.destination) };
            hash.departure(time, u32::from(label.host) << 16 | u32::from(label.peer), dscp.into());
            starts.push(time);
            labels.push(label);
            starts.len() as u32 - 1
        });
        let (len, ecn) = (len.max(SHORTEST_PACKET), packet.headers.ecn);
        hash.departure(time, flow, u32::from(len) << 2 | ecn as u32);
        packets.push(Arrival { time, flow, len, ecn });
    }
    Ok(Arrivals {
        packets: packets.into(),
        starts,
        labels,
        digest: hash.to_string(),
        reordered: capture.reordered(),
        oversized: capture.oversized(),
        silence: [capture.silence().from, capture.silence().lasts],
        file,
    })
}
