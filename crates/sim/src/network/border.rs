//! A network that is one part of another: packets leave it over some links, and come into it over others.
//!
//! All parts have the same links and the same table of paths. What belongs to other parts is [`ELSEWHERE`] in
//! it. A link that leads out takes no time from its transmitter to its end here: a packet that comes there
//! leaves, with the time at which it comes to the other part, and comes in at the end of the same link.

use aqm::Duration;
use link::NEVER;

use super::Network;
use super::path::{BITS, ELSEWHERE, END, FOLDED, GOES_ON, MERGES, NOT_PLAIN};
use super::stage::Stage;
use super::wires::Wires;
use crate::packet::Packet;

/// The number of a part of a network.
pub(crate) type Part = u16;

/// A packet between two parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    /// When it comes to the end of its link, ns.
    pub(crate) at: u64,
    link: u32,
    packet: Packet,
}

/// Where a part of a network ends.
#[derive(Clone, Debug)]
pub(super) struct Border {
    /// The table of paths of the whole network, without bits.
    whole: Vec<u32>,
    /// Of each link that leads out, where to, and its delay, ns.
    exits: Vec<Option<(Part, u64)>>,
    /// What left, by part.
    left: Vec<Vec<Crossing>>,
    /// When the first of it comes there, ns.
    first: u64,
    crossed: usize,
}

impl Border {
    /// The delay of a link beyond this part, ns.
    fn delay(&self, link: usize) -> u64 {
        self.exits[link].map_or(0, |(_, delay)| delay)
    }
}

impl Network {
    /// Becomes part `own` of so many. `ends` has, of each link, the part that sends over it and the one that
    /// it leads to; what merges packets has them from its own part alone. Only before the first packet.
    pub(crate) fn keep(&mut self, own: Part, ends: &[[Part; 2]], parts: usize) {
        let bare = |&entry: &u32| if entry == END { END } else { entry & !BITS };
        let whole = self.wires.paths.iter().map(bare).collect();
        let mut came_to = None;
        for entry in &mut self.wires.paths {
            let number = (*entry & !BITS) as usize;
            let of = match ends.get(number) {
                Some(&[from, to]) => {
                    came_to = Some(to);
                    Some(from)
                }
                None if *entry == END => came_to.take(),
                None => match self.stages[number - ends.len()] {
                    Stage::Admit(link, _) => Some(ends[link][0]),
                    // At the beginning of a path, which only the part begins that it belongs to.
                    Stage::Draw(_) => None,
                },
            };
            if of.is_some_and(|of| of != own) {
                *entry = ELSEWHERE;
            }
        }
        for i in 1..self.wires.paths.len() {
            if self.wires.paths[i] == ELSEWHERE {
                self.wires.paths[i - 1] &= !GOES_ON;
            }
        }
        // What a queue sends, or another part, would pass by a merge that it goes on to at once.
        let (mut before, mut fed) = (END, false);
        for &entry in &self.wires.paths {
            let at_once = before & GOES_ON != 0;
            assert!(fed || !at_once || entry & MERGES == 0, "a merge of what comes from a queue");
            let crossed = before == ELSEWHERE && entry & FOLDED != 0;
            fed = entry & NOT_PLAIN == 0 && if at_once { fed } else { !crossed };
            before = entry;
        }
        let mut exits = vec![None; ends.len()];
        for (link, &[from, to]) in ends.iter().enumerate() {
            let line = &mut self.wires.lines[link];
            if from != own {
                self.queues[link] = None;
                (line.managed, line.merge) = (false, None);
            } else if to != own {
                exits[link] = Some((to, line.transmitter.delay()));
                line.transmitter.change_delay(Duration::ZERO);
            }
        }
        let left = vec![Vec::new(); parts];
        self.border = Some(Box::new(Border { whole, exits, left, first: NEVER, crossed: 0 }));
    }

    /// A packet has come at `now` to where this part ends.
    #[inline(never)]
    pub(super) fn leave(&mut self, now: u64, packet: &Packet) {
        let Some(border) = &mut self.border else { return };
        let link = border.whole[packet.hop as usize - 1];
        if let Some((part, delay)) = border.exits[link as usize] {
            let at = now + delay;
            border.crossed += 1;
            border.first = border.first.min(at);
            border.left[usize::from(part)].push(Crossing { at, link, packet: *packet });
        }
    }

    /// What left to another part since it was asked last, in the place of what `taken` has.
    pub(crate) fn take_left(&mut self, part: usize, taken: &mut Vec<Crossing>) {
        if let Some(border) = &mut self.border {
            std::mem::swap(&mut border.left[part], taken);
        }
    }

    /// When something happens next, here or where a packet comes that left since this was asked last, ns; the
    /// end of what is simulated if nothing does.
    pub(crate) fn next_event(&mut self) -> u64 {
        let first = self.border.as_mut().map(|border| std::mem::replace(&mut border.first, NEVER));
        self.wires.events.time().min(first.unwrap_or(NEVER))
    }

    /// A packet comes from another part.
    pub(crate) fn enter(&mut self, &Crossing { at, link, packet }: &Crossing) {
        let entry = self.wires.paths[packet.hop as usize];
        if entry & FOLDED != 0 {
            // Packets come to the next link from here alone, in this order.
            self.wires.send::<false>(entry, at, &packet);
            return;
        }
        let Wires { lines, events, .. } = &mut self.wires;
        let line = &mut lines[link as usize];
        let key = events.links.key(at, line.source);
        let in_lane = events.links.push(key, &packet, packet.hop, &mut line.lane).is_some();
        if !in_lane && line.wait(key, &packet, packet.hop) {
            events.links.set_key(key);
        }
    }

    /// The table of paths, also of what belongs to other parts.
    pub(super) fn table(&self) -> &[u32] {
        self.border.as_ref().map_or(&self.wires.paths, |border| &border.whole)
    }

    /// How long the packets of a link are under way beyond this part, ns.
    pub(super) fn delay_beyond(&self, link: usize) -> u64 {
        self.border.as_ref().map_or(0, |border| border.delay(link))
    }

    /// Packets that left.
    pub(super) fn crossed(&self) -> usize {
        self.border.as_ref().map_or(0, |border| border.crossed)
    }
}
