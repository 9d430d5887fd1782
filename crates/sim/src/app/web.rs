//! Web sessions: pages of objects, each object over a connection of its own.
//!
//! ```text
//! think -> page: ask for its objects, as many at a time as there are slots -> all there -> think
//! an object: (SYN -> SYN-ACK ->) request -> its packets
//! ```
//!
//! Clients sit at the receivers' end of the flows: requests go the acknowledgements' way. A slot is a
//! flow that carries one connection after another; each has another number, by which queues take it
//! for another flow and what is left of the one before is known.

use aqm::Rng;

use super::{Objects, Periods};
use crate::results::transfers::Transfers;

/// Where the client of a slot is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Client {
    /// It wants nothing.
    #[default]
    Idle,
    /// It has sent a SYN.
    Opening,
    /// It has sent a request.
    Asking,
    /// Some of the object is there.
    Receiving,
}

/// A slot for connections.
#[derive(Clone, Default, Debug)]
pub(crate) struct Slot {
    pub(crate) client: Client,
    /// Packets of the object.
    pub(crate) packets: u32,
    /// When the client began to open the connection, ns.
    pub(crate) asked_at: u64,
    /// How long it waits before it repeats itself, ns.
    pub(crate) retry: u64,
    /// The answer to its SYN came marked.
    pub(crate) marked: bool,
    /// Packets delivered by connections before the present one.
    pub(crate) delivered: u32,
}

/// A user at a browser.
#[derive(Clone, Debug)]
struct Session {
    rng: Rng,
    /// Objects of the page that nobody has asked for yet, and that are under way.
    left: u32,
    open: u32,
    page_began: u64,
}

/// The sessions of a group.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    objects: Objects,
    /// The group's first flow.
    first: usize,
    slots: Box<[Slot]>,
    sessions: Box<[Session]>,
    pub(crate) requests: Transfers,
    pub(crate) pages: Transfers,
}

/// What follows from an object that is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// The same slot asks for another one.
    Ask,
    /// Others of the page are under way.
    Wait,
    /// The page is complete: the next begins at this time, by the session's first flow.
    Page {
        /// The flow.
        flow: usize,
        /// The time, ns.
        at: u64,
    },
}

impl Web {
    /// Sessions that have not begun, one for each generator; `first` is the number of their first
    /// flow.
    pub(crate) fn new(objects: Objects, first: usize, rngs: Vec<Rng>) -> Self {
        let session = |rng| Session { rng, left: 0, open: 0, page_began: 0 };
        Self {
            objects,
            first,
            slots: vec![Slot::default(); rngs.len() * usize::from(objects.connections)].into(),
            sessions: rngs.into_iter().map(session).collect(),
            requests: Transfers::default(),
            pages: Transfers::default(),
        }
    }

    /// Whether a flow is the first of its session, whose events are the session's.
    pub(crate) fn wakes(&self, flow: usize) -> bool {
        (flow - self.first).is_multiple_of(usize::from(self.objects.connections))
    }

    /// The slot of a flow.
    pub(crate) fn slot(&mut self, flow: usize) -> &mut Slot {
        &mut self.slots[flow - self.first]
    }

    /// Packets delivered by connections of a flow before the present one.
    pub(crate) fn delivered(&self, flow: usize) -> u32 {
        self.slots[flow - self.first].delivered
    }

    fn session(&mut self, flow: usize) -> &mut Session {
        &mut self.sessions[(flow - self.first) / usize::from(self.objects.connections)]
    }

    /// A page begins. Returns how many slots ask at once, from the session's first on.
    pub(crate) fn begin_page(&mut self, now: u64, flow: usize) -> usize {
        self.pages.begin();
        let Objects { number, connections, .. } = self.objects;
        let session = self.session(flow);
        (session.left, session.page_began) = (number, now);
        number.min(u32::from(connections)) as usize
    }

    /// A slot takes the next object of its page.
    pub(crate) fn ask(&mut self, now: u64, flow: usize, retry: u64) {
        self.requests.begin();
        let Objects { packets, shape, handshake, .. } = self.objects;
        let session = self.session(flow);
        session.left -= 1;
        session.open += 1;
        let drawn =
            shape.map_or(packets, |shape| Periods::Pareto(shape).draw(packets, &mut session.rng));
        let slot = self.slot(flow);
        slot.packets = ((drawn + 500) / 1000).clamp(1, 0x7fff_ffff) as u32;
        slot.asked_at = now;
        (slot.retry, slot.marked) = (retry, false);
        slot.client = if handshake { Client::Opening } else { Client::Asking };
    }

    /// The object of a slot, which alone takes `alone`, is complete.
    pub(crate) fn complete(&mut self, now: u64, flow: usize, alone: Option<u64>) -> Next {
        let (think, connections) = (self.objects.think, usize::from(self.objects.connections));
        let slot = self.slot(flow);
        slot.client = Client::Idle;
        let (asked_at, packets) = (slot.asked_at, slot.packets);
        self.requests.complete(asked_at, now, alone.map(|alone| (packets, alone)));
        let session = self.session(flow);
        session.open -= 1;
        if session.left > 0 {
            return Next::Ask;
        }
        if session.open > 0 {
            return Next::Wait;
        }
        let at = now.saturating_add(Periods::Exponential.draw(think, &mut session.rng));
        let began = session.page_began;
        self.pages.complete(began, now, None);
        Next::Page { flow: flow - (flow - self.first) % connections, at }
    }

    /// Begins a new window of measurement.
    pub(crate) fn restart_measurement(&mut self, now: u64) {
        self.requests.restart(now);
        self.pages.restart(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECTS: Objects = Objects {
        number: 3,
        connections: 2,
        packets: 24_000,
        shape: None,
        think: 1_000,
        handshake: false,
    };

    #[test]
    fn a_page_is_asked_for_slot_by_slot() {
        let rngs = vec![Rng::new(1, 0), Rng::new(1, 1)];
        let mut web = Web::new(OBJECTS, 10, rngs);
        // The second session has flows 12 and 13.
        assert_eq!(web.begin_page(5, 12), 2);
        web.ask(5, 12, 7);
        web.ask(5, 13, 7);
        assert_eq!((web.slot(13).packets, web.slot(13).client), (24, Client::Asking));
        assert_eq!(web.complete(20, 13, Some(10)), Next::Ask);
        web.ask(20, 13, 7);
        assert_eq!(web.complete(30, 12, Some(10)), Next::Wait);
        let Next::Page { flow: 12, at } = web.complete(40, 13, Some(10)) else { panic!("no page") };
        assert!(at >= 40);
        let (requests, pages) = (web.requests.summary(), web.pages.summary());
        assert_eq!((requests.began, requests.completed), (3, 3));
        // 15, 25 and 20 ns; the page from 5 to 40.
        assert_eq!(requests.times_s[0], Some(20e-9));
        assert_eq!((pages.completed, pages.times_s[0]), (1, Some(35e-9)));
        assert_eq!(pages.slowdowns[0], None);
    }

    /// Pareto of mean 24 and shape 1.2: at least 4 packets, the median 4·2^(1/1.2) = 7.13 rounded, and
    /// one in (4/24.5)^1.2 = 11.4 % with 25 and more.
    #[test]
    fn objects_have_the_sizes_that_are_asked_for() {
        let objects = Objects { shape: Some(1.2), number: 20_000, connections: 1, ..OBJECTS };
        let mut web = Web::new(objects, 0, vec![Rng::new(3, 0)]);
        web.begin_page(0, 0);
        let mut sizes: Vec<u32> = (0..20_000)
            .map(|_| {
                web.ask(0, 0, 1);
                web.slot(0).packets
            })
            .collect();
        sizes.sort_unstable();
        assert_eq!((sizes[0], sizes[10_000]), (4, 7));
        let above = sizes.iter().filter(|n| **n >= 25).count() as f64 / 20_000.0;
        assert!((above - 0.114).abs() < 0.01, "{above}");
    }
}
