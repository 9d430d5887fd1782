//! Switches whose ports share a buffer.

use aqm::Limit;
use aqm::units::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Complaint;
use crate::network::Topology;
use crate::text::Text;

/// A switch, or several alike, whose ports share a buffer under dynamic thresholds (CH98).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchSpec {
    /// The node. A `*` stands for any text: each such node with a managed queue has a buffer of its own.
    /// Without it all switches of a fabric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What all managed queues of its links out have together, in bytes; the `buffer` of each queue
    /// bounds that one as well.
    pub buffer: Text<Size>,
    /// A queue drops what arrives while it is as long as `alpha` times the free part of the buffer:
    /// above 0 … 1000.
    #[serde(default = "one")]
    pub alpha: f64,
}

fn one() -> f64 {
    1.0
}

/// A buffer that the queues of links share.
#[derive(Clone, PartialEq, Debug)]
pub struct Shared {
    /// The links, by number.
    pub links: Vec<usize>,
    /// Its size in bytes.
    pub bytes: u64,
    /// How much of the free part a queue may have.
    pub alpha: f64,
}

impl SwitchSpec {
    /// The buffers of these switches, whose links are `managed` or not; `i` is its number in the file.
    fn shared(
        &self,
        i: usize,
        topology: &Topology,
        managed: &[bool],
    ) -> Result<Vec<Shared>, Complaint> {
        let key = |field: &str| format!("switch[{i}].{field}");
        let bytes = match self.buffer.0 {
            Size::Bytes(bytes) if bytes >= Limit::MIN_PACKET => bytes,
            _ => {
                let allowed = format!("bytes (2MB), at least {}B", Limit::MIN_PACKET);
                return Err(Complaint::new(key("buffer"), allowed));
            }
        };
        if !(self.alpha > 0.0 && self.alpha <= 1000.0) {
            return Err(Complaint::new(key("alpha"), "above 0 … 1000"));
        }
        let ports = |&node: &usize| {
            let out = topology.out[node].iter().copied();
            out.filter(|&link| managed[link]).collect::<Vec<usize>>()
        };
        let nodes = topology.find_nodes(self.name.as_deref(), &key("name"))?;
        let links = nodes.iter().map(ports).filter(|links| !links.is_empty());
        let all: Vec<Shared> =
            links.map(|links| Shared { links, bytes, alpha: self.alpha }).collect();
        let medium = |&link: &usize| topology.links[link].medium().map(|medium| (link, medium));
        let links = all.iter().flat_map(|shared| &shared.links);
        if let Some((link, medium)) = links.filter_map(medium).next() {
            let allowed = format!("a node without {medium} on a link out");
            let hint = format!("{} has {medium}", topology.link_name(link));
            return Err(Complaint::new(key("name"), allowed).hint(hint));
        }
        if all.is_empty() {
            return Err(Complaint::new(key("name"), "a node with a managed queue on a link out")
                .hint("its queues share the buffer: add [[queue]] for them"));
        }
        Ok(all)
    }
}

/// All shared buffers of switches, over links with queues at `managed`.
///
/// # Errors
/// What is wrong with them.
pub fn shared(
    specs: &[SwitchSpec],
    topology: &Topology,
    managed: &[usize],
) -> Result<Vec<Shared>, Complaint> {
    let mut free = vec![false; topology.links.len()];
    managed.iter().for_each(|&link| free[link] = true);
    let mut all = Vec::new();
    let mut taken = vec![false; topology.links.len()];
    for (i, spec) in specs.iter().enumerate() {
        for shared in spec.shared(i, topology, &free)? {
            if std::mem::replace(&mut taken[shared.links[0]], true) {
                let name = topology.link_name(shared.links[0]);
                let node = name.split("->").next().unwrap_or_default().to_string();
                return Err(Complaint::new(format!("switch[{i}].name"), "each node once")
                    .hint(format!("{node} has a shared buffer already")));
            }
            all.push(shared);
        }
    }
    Ok(all)
}
