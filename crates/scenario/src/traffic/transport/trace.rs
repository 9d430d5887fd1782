//! The packets of a capture.

use std::sync::Arc;

use aqm::Duration;
use aqm::units::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::de::Error;

use super::Keys;
use crate::arrivals::{Arrivals, Files};
use crate::error::Complaint;
use crate::text::{Network, Span, Text};
use crate::traffic::app::{App, AppName};
use crate::traffic::owner::{Table, read};
use crate::traffic::{GroupSpec, Place};

/// Keys of `trace`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "trace")]
pub struct Trace {
    /// The capture (pcap or pcapng), as seen from the folder of the scenario's file. Packets that would
    /// come after the end are not read.
    pub file: String,
    /// Networks whose packets are sent, such as those of one direction; without it all are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<Text<Network>>,
    /// Checksum of the packets, 16 hexadecimal digits. Bluewater fills it in; if you give it, the file has to
    /// match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The packets of the file, once it was read.
    #[serde(skip)]
    pub arrivals: Arc<Arrivals>,
    /// Whether `flows` and `packet` are given, which follow from the file.
    #[serde(skip)]
    given: [bool; 2],
}

impl Trace {
    /// Takes the capture and fills in what follows from it for the group.
    pub(in crate::traffic) fn fill(
        &mut self,
        group: &mut GroupSpec,
        end: Duration,
        at: &Place,
        files: &mut dyn Files,
    ) -> Result<(), Complaint> {
        let Span { from, to } = group.start.0;
        if from != to || group.step.is_some() {
            return at.refuse("start", "an instant, and no steps, for a trace");
        }
        let until = group.stop.map_or(end, |stop| stop.0.min(end)).saturating_sub(from);
        let arrivals = files
            .capture(&self.file, until, &self.senders)
            .map_err(|problem| Complaint::wrong(at.key("file"), problem))?;
        if arrivals.packets.is_empty() {
            if self.senders.is_empty() {
                return at.refuse("file", "a capture with packets before the end");
            }
            return at.refuse("senders", "networks that send packets of the file before the end");
        }
        if self.digest.as_ref().is_some_and(|digest| *digest != arrivals.digest) {
            let allowed = format!("{}: the packets of {}", arrivals.digest, self.file);
            return Err(Complaint::new(at.key("digest"), allowed)
                .hint("the file is not the one that this was made from"));
        }
        let flows = u32::try_from(arrivals.starts.len()).unwrap_or(u32::MAX);
        let packet = Text(Size::Bytes(arrivals.mean_len()));
        // A canonical scenario has them, as they follow; others would be written over in silence.
        if self.given[0] && group.flows != flows {
            return at.refuse("flows", &format!("nothing: those of the file, which are {flows}"));
        }
        if self.given[1] && group.packet != packet {
            let mean = format!("nothing: lengths are those of the file, in the mean {}", packet.0);
            return at.refuse("packet", &mean);
        }
        (group.flows, group.packet) = (flows, packet);
        self.file.clone_from(&arrivals.file);
        self.digest = Some(arrivals.digest.clone());
        self.arrivals = Arc::new(arrivals);
        Ok(())
    }
}

impl Keys for Trace {
    const CARRIES: &'static [AppName] = &[];
    const CARRIES_ONLY: &'static str = "none: a trace tells what is sent";
    const IS_GREEDY: bool = false;
    const ANSWERS: bool = false;

    fn read(table: Table<'_>, given: [bool; 2]) -> Result<Self, Error> {
        Ok(Self { given, ..read(table)? })
    }

    fn check(&self, _: &GroupSpec, _: &App, _: &Place) -> Result<(), Complaint> {
        Ok(())
    }
}
