//! What each of CAKE's tins carried. Packets are counted by their codepoints, which name the tins, and
//! here rather than in the queue, where it would cost every user of the library time.

use aqm::any::canonical;
use aqm::fair::cake::{self, Diffserv};
use aqm::param::Value as _;
use aqm::{Instant, Label, Meta};
use serde_json::{Map, Value, json};

use super::Spec;

/// Packets of a codepoint since a queue discipline began.
#[derive(Clone, Copy, Default, Debug)]
struct Count {
    /// Those that were sent, and their bytes.
    packets: u64,
    bytes: u64,
    /// How long they had been in the queue, ns.
    waited: u64,
    dropped: u64,
    marked: u64,
}

/// What happens to a packet at its queue.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// It is sent.
    Sent,
    /// It is dropped.
    Dropped,
    /// It is marked.
    Marked,
}

/// Counts of what came to a CAKE since it began; of another discipline none.
#[derive(Debug, Default)]
pub(super) struct Tins(Option<Box<Cake>>);

#[derive(Debug)]
struct Cake {
    sorting: Diffserv,
    /// What came before that came to another discipline.
    since: Instant,
    counts: [Count; Label::CODEPOINTS as usize],
}

impl Tins {
    /// For the queue of a link that begins at `since`.
    pub(super) fn new(spec: &Spec, since: Instant) -> Self {
        let sorting = || {
            // Classes have counts of their own, and each may sort otherwise.
            if spec.aqm != cake::ABOUT.name || spec.classes.is_some() {
                return None;
            }
            let params: Vec<_> =
                spec.params.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            let all = canonical(&spec.aqm, &params).ok()?;
            let (_, text) = all.iter().find(|(name, _)| *name == "diffserv")?;
            Diffserv::read(text).ok()
        };
        let counts = [Count::default(); Label::CODEPOINTS as usize];
        Self(sorting().map(|sorting| Box::new(Cake { sorting, since, counts })))
    }

    /// Something happens to a packet at `now`.
    #[inline]
    pub(super) fn count(&mut self, meta: &Meta, now: Instant, event: Event) {
        let Some(cake) = &mut self.0 else { return };
        if meta.arrived < cake.since {
            return;
        }
        let count = &mut cake.counts[usize::from(meta.flow.label().dscp)];
        match event {
            Event::Sent => {
                count.packets += 1;
                count.bytes += u64::from(meta.len);
                count.waited += now.since(meta.arrived).as_nanos();
            }
            Event::Dropped => count.dropped += 1,
            Event::Marked => count.marked += 1,
        }
    }

    /// Each count of these and `others`, by tin, if there are tins.
    pub(super) fn told(&self, others: &Self) -> Option<Value> {
        let (cake, other) = (self.0.as_ref()?, others.0.as_ref()?);
        let names = cake.sorting.tins();
        let mut tins = vec![Count::default(); names.len()];
        for counts in [&cake.counts, &other.counts] {
            for (dscp, one) in (0..).zip(counts) {
                let tin = &mut tins[usize::from(cake.sorting.tin_of(dscp))];
                tin.packets += one.packets;
                tin.bytes += one.bytes;
                tin.waited += one.waited;
                tin.dropped += one.dropped;
                tin.marked += one.marked;
            }
        }
        let by_tin = |number: &dyn Fn(&Count) -> Value| -> Map<String, Value> {
            names.iter().zip(&tins).map(|(name, tin)| ((*name).into(), number(tin))).collect()
        };
        Some(json!({
            "packets": by_tin(&|tin| tin.packets.into()),
            "bytes": by_tin(&|tin| tin.bytes.into()),
            "drops": by_tin(&|tin| tin.dropped.into()),
            "marks": by_tin(&|tin| tin.marked.into()),
            "sojourn_s": by_tin(&|tin| (tin.waited as f64 / 1e9).into()),
        }))
    }
}
