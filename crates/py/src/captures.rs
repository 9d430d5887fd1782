//! Packet captures: measured, generated, and both at once.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write as _};
use std::path::Path;

use aqm::{Duration, Ecn, Rate};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use trace::generate::{Options, Packets};
use trace::headers::{self, Ends, Segment};
use trace::pcapng::{self, Way};
use trace::skew::{self, Analysis, Report};
use trace::write::{Format, Writer};
use trace::{Capture, Error, Packet};
use wire::{Flow, Layer};

/// Lists of what each row has, by name.
macro_rules! columns {
    ($py:expr, $rows:expr, { $($name:literal: $value:expr),* $(,)? }) => {{
        let columns = PyDict::new($py);
        $(columns.set_item($name, $rows.iter().map($value).collect::<Vec<_>>())?;)*
        columns
    }};
}
/// Packets between two checks for Python's signals, such as Ctrl-C.
const SLICE: u32 = 1 << 16;

/// Packets that were reordered, that cannot be read, and that are oversized; and the longest time without a
/// packet: when it begins and how long it lasts, ns.
type Odd = ([u64; 3], [u64; 2]);

/// Where packets come from.
pub(crate) trait Source: Send {
    fn next(&mut self) -> Result<Option<Packet>, Error>;
    /// The share that is done.
    fn progress(&self) -> f64;
    /// What is odd about them.
    fn odd(&self) -> Odd;
}

struct Captured<R> {
    capture: Capture<R>,
    /// Bytes of the file; 0 if nobody knows.
    length: u64,
}

impl<R: Read + Send> Source for Captured<R> {
    fn next(&mut self) -> Result<Option<Packet>, Error> {
        self.capture.next_packet()
    }

    fn progress(&self) -> f64 {
        (self.capture.offset() as f64 / self.length.max(1) as f64).min(1.0)
    }

    fn odd(&self) -> Odd {
        let (silence, capture) = (self.capture.silence(), &self.capture);
        let counts = [capture.reordered(), capture.unread(), capture.oversized()];
        (counts, [silence.from, silence.lasts])
    }
}

impl Source for Packets {
    fn next(&mut self) -> Result<Option<Packet>, Error> {
        let read = |sent: trace::generate::Sent| Packet {
            time: sent.time,
            len: sent.len,
            headers: wire::parse(&sent.head, Layer::Ip),
            likeness: None,
        };
        Ok(Iterator::next(self).map(read))
    }

    fn progress(&self) -> f64 {
        Packets::progress(self)
    }

    fn odd(&self) -> Odd {
        Odd::default()
    }
}

/// What is wrong with an argument: `(name, allowed)`.
fn refuse(name: &str, allowed: impl ToString) -> PyErr {
    PyValueError::new_err((name.to_owned(), allowed.to_string()))
}

fn time(name: &str, text: &str) -> PyResult<u64> {
    let time: Duration = text.parse().map_err(|_| refuse(name, "a time such as 5s or 100ms"))?;
    Ok(time.as_nanos())
}

/// What is measured, from text.
pub(crate) fn measures(
    windows: &[String],
    timeout: &str,
    most_flows: usize,
) -> PyResult<skew::Options> {
    let windows = windows.iter().map(|text| match time("windows", text)? {
        0 => Err(refuse("windows", "times above 0")),
        window => Ok(window),
    });
    if !(2..=u32::MAX as usize).contains(&most_flows) {
        return Err(refuse("most_flows", "2 … 4294967295"));
    }
    Ok(skew::Options {
        windows: windows.collect::<PyResult<_>>()?,
        timeout: time("timeout", timeout)?,
        most_flows,
    })
}

/// The generator for options by their names.
pub(crate) fn generator(options: Option<&Bound<'_, PyDict>>) -> PyResult<Packets> {
    let mut made = Options::default();
    for (key, value) in options.into_iter().flatten() {
        let key: String = key.extract()?;
        let number = || value.extract::<f64>().map_err(|_| refuse(&key, "a number"));
        let count = || value.extract::<u64>().map_err(|_| refuse(&key, "a whole number from 0"));
        let text = || value.extract::<String>().map_err(|_| refuse(&key, "text"));
        let rate = || -> PyResult<Rate> {
            text()?.parse().map_err(|_| refuse(&key, "a rate such as 10mbit"))
        };
        match key.as_str() {
            "seed" => made.seed = count()?,
            "duration" => made.duration = Duration::from_nanos(time(&key, &text()?)?),
            "load" => made.load = rate()?,
            "size_shape" => made.size_shape = number()?,
            "least" => made.least = count()?,
            "most" => made.most = count()?,
            "rate_shape" => made.rate_shape = number()?,
            "slowest" => made.slowest = rate()?,
            "fastest" => made.fastest = rate()?,
            "ecn" => made.ecn = number()?,
            _ => return Err(refuse(&key, OPTIONS)),
        }
    }
    Packets::new(made).map_err(|e| refuse(e.option, e.allowed))
}

const OPTIONS: &str = "seed, duration, load, size_shape, least, most, rate_shape, slowest, \
                       fastest, ecn";

/// Measures the capture at `path`, or stdin's.
pub(crate) fn measure<'py>(
    py: Python<'py>,
    path: Option<&Path>,
    options: &skew::Options,
    top: usize,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let name = path.map_or("<stdin>".into(), |path| path.display().to_string());
    let length = match path {
        Some(path) => std::fs::metadata(path)?.len(),
        None => 0,
    };
    let input: Box<dyn Read + Send> = match path {
        Some(path) => Box::new(File::open(path)?),
        None => Box::new(io::stdin()),
    };
    match Capture::new(input, &name) {
        Ok(capture) => analyse(py, &mut Captured { capture, length }, options, top, progress),
        Err(e) => Err(PyValueError::new_err((e.file, e.offset, e.problem))),
    }
}

/// Measures all packets of a source; `top` flows are listed.
pub(crate) fn analyse<'py>(
    py: Python<'py>,
    source: &mut dyn Source,
    options: &skew::Options,
    top: usize,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut analysis = Analysis::new(options);
    let mut slice = || {
        for _ in 0..SLICE {
            match source.next() {
                Ok(Some(packet)) => analysis.add(&packet),
                Ok(None) => return (Some(None), 1.0),
                Err(e) => return (Some(Some(e)), 1.0),
            }
        }
        (None, source.progress())
    };
    let error = loop {
        let (end, done) = py.detach(&mut slice);
        looked(py, progress, done)?;
        if let Some(error) = end {
            break error;
        }
    };
    let odd = source.odd();
    let report = py.detach(|| analysis.report());
    tables(py, &report, odd, error, top)
}

/// A UDP datagram: its time (ns since the first packet), bytes and ECN field; what it has at both ends of a
/// path; its addresses and ports.
pub(crate) type Datagram<'py> =
    (u64, u32, u8, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, [u16; 2]);

/// The UDP datagrams of the capture at `path`, up to `most`.
pub(crate) fn datagrams<'py>(
    py: Python<'py>,
    path: &Path,
    most: usize,
) -> PyResult<Vec<Datagram<'py>>> {
    let refused = |e: Error| PyValueError::new_err((e.file, e.offset, e.problem));
    let name = path.display().to_string();
    let mut capture = Capture::new(File::open(path)?, &name).map_err(refused)?;
    let mut found = Vec::new();
    while let Some(Packet { time, len, headers, likeness }) =
        capture.next_packet().map_err(refused)?
    {
        let Some(likeness) = likeness else { continue };
        if found.len() == most {
            let problem = format!("more than {most} datagrams of UDP");
            return Err(PyValueError::new_err((name, capture.offset(), problem)));
        }
        if found.len().is_multiple_of(SLICE as usize) {
            py.check_signals()?;
        }
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
        let Flow { source, destination, ports, .. } = headers.flow;
        let (source, destination) = (bytes(&source), bytes(&destination));
        found.push((time, len, headers.ecn as u8, bytes(&likeness), source, destination, ports));
    }
    Ok(found)
}

fn looked(py: Python<'_>, progress: Option<&Bound<'_, PyAny>>, done: f64) -> PyResult<()> {
    py.check_signals()?;
    if let Some(progress) = progress {
        progress.call1((done,))?;
    }
    Ok(())
}

/// Writes the packets to `path`: classic pcap if it ends so, else pcapng. Gives packets and bytes.
pub(crate) fn write(
    py: Python<'_>,
    mut packets: Packets,
    path: &Path,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(u64, u64)> {
    let classic = path.extension().is_some_and(|ending| ending == "pcap");
    let format = if classic { Format::Pcap } else { Format::Pcapng };
    let mut writer = Writer::new(BufWriter::new(File::create(path)?), format)?;
    let mut sum = (0, 0);
    let mut slice = || -> io::Result<Option<f64>> {
        for _ in 0..SLICE {
            let Some(sent) = Iterator::next(&mut packets) else { return Ok(None) };
            writer.packet(sent.time, sent.len, &sent.head)?;
            sum = (sum.0 + 1, sum.1 + u64::from(sent.len));
        }
        Ok(Some(packets.progress()))
    };
    while let Some(done) = py.detach(&mut slice)? {
        looked(py, progress, done)?;
    }
    writer.end()?;
    Ok(sum)
}

/// A packet of a simulation: its arrival (ns), bytes and ECN field; addresses and ports; of TCP number
/// and acknowledgement and whether it is a SYN; a comment.
#[derive(FromPyObject)]
struct Commented(
    u64,
    u16,
    u8,
    ([u8; 4], [u8; 4]),
    [u16; 2],
    Option<(u32, Option<u32>, bool)>,
    String,
);

/// Writes packets with their comments to `path`, as pcapng: of each its headers.
pub(crate) fn write_commented(path: &Path, rows: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut out = BufWriter::new(File::create(path)?);
    pcapng::head(&mut out, pcapng::RAW_IP, "")?;
    for row in rows.try_iter()? {
        let Commented(time, len, ecn, (source, destination), ports, segment, comment) =
            row?.extract()?;
        let ends = Ends { source, destination, ports };
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(ecn & 3)];
        let headers = match segment {
            Some((seq, ack, syn)) => {
                headers::tcp(&ends, ecn, len, &Segment { seq, ack, syn }).to_vec()
            }
            None => headers::udp(&ends, ecn, len).to_vec(),
        };
        let kept = &headers[..headers.len().min(len.into())];
        pcapng::packet(&mut out, time, len.into(), kept, (Way::Unknown, &comment))?;
    }
    Ok(out.flush()?)
}

const NS: f64 = 1e-9;

fn tables<'py>(
    py: Python<'py>,
    report: &Report,
    odd: Odd,
    error: Option<Error>,
    top: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let flows = &report.flows[..report.flows.len().min(top)];
    let all = PyDict::new(py);
    all.set_item("summary", summary(py, report, odd, error)?)?;
    all.set_item(
        "flows",
        columns!(py, flows, {
            "source": |f| address(&f.flow.source),
            "source_port": |f| f.flow.ports[0],
            "destination": |f| address(&f.flow.destination),
            "destination_port": |f| f.flow.ports[1],
            "protocol": |f| u32::from(f.flow.protocol),
            "packets": |f| f.packets,
            "bytes": |f| f.bytes,
            "first_s": |f| f.first as f64 * NS,
            "last_s": |f| f.last as f64 * NS,
        }),
    )?;
    all.set_item(
        "windows",
        columns!(py, report.windows, {
            "window": |w| window(w.window),
            "window_s": |w| w.window as f64 * NS,
            "count": |w| w.count,
            "pairs": |w| w.pairs,
            "flows": |w| w.flows,
        }),
    )?;
    all.set_item(
        "skew",
        columns!(py, report.skew, {
            "window": |s| s.window.map_or("whole".into(), window),
            "window_s": |s| s.window.map(|window| window as f64 * NS),
            "flow_share": |s| s.flows,
            "byte_share": |s| s.bytes,
            "packet_share": |s| s.packets,
            "next_share": |s| s.next,
        }),
    )?;
    all.set_item(
        "persistence",
        columns!(py, report.persistence, {
            "window": |p| window(p.window),
            "window_s": |p| p.window as f64 * NS,
            "byte_share": |p| p.share,
            "next_share": |p| p.next,
        }),
    )?;
    Ok(all)
}

/// The summary of a capture.
fn summary<'py>(
    py: Python<'py>,
    report: &Report,
    ([reordered, unread, oversized], [silent_from, silent]): Odd,
    error: Option<Error>,
) -> PyResult<Bound<'py, PyDict>> {
    let summary = PyDict::new(py);
    let duration = report.duration as f64 * NS;
    let bits = 8.0 * report.bytes as f64;
    summary.set_item("duration_s", duration)?;
    summary.set_item("load_bps", if duration > 0.0 { bits / duration } else { 0.0 })?;
    for (key, value) in [
        ("packets", report.packets),
        ("bytes", report.bytes),
        ("flows", report.flows.len() as u64 + report.others.flows),
        ("merged_flows", report.others.flows),
        ("merged_bytes", report.others.bytes),
        ("merged_largest", report.others.largest),
        ("not_ip_packets", report.not_ip_packets),
        ("not_ip_bytes", report.not_ip_bytes),
        ("reordered", reordered),
        ("unread", unread),
        ("oversized", oversized),
    ] {
        summary.set_item(key, value)?;
    }
    summary.set_item("silence_from_s", silent_from as f64 * NS)?;
    summary.set_item("silence_s", silent as f64 * NS)?;
    summary.set_item("error", error.map(|e| e.to_string()))?;
    Ok(summary)
}

fn window(length: u64) -> String {
    Duration::from_nanos(length).to_string()
}

fn address(bytes: &[u8; 16]) -> String {
    std::net::Ipv6Addr::from(*bytes).to_canonical().to_string()
}
