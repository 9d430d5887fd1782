//! What a user's own controller learns, and the window that it sets.

use super::delivery::Delivery;
use super::{Core, Rack, State};
use crate::control::{Ack, Congestion, Kind, Lost, Sent, Undo};
use crate::transport::tcp::options::{Echo, Options};

/// What is known for it beside a model's samples.
#[derive(Clone, Default, Debug)]
pub(super) struct Aside {
    /// What the controller gave for each packet under way: number n at place n modulo the length, a
    /// power of two.
    tags: Box<[u64]>,
    /// An episode of which the controller does not know yet, and whether it has just begun. If not, these are the
    /// first losses in an episode that a mark began.
    pub(super) episode: Option<(Kind, bool)>,
    /// Past the packet that was found lost last.
    past_lost: u32,
    /// A round trip ends with the first packet that was sent when so many had been delivered.
    next_round: u32,
    /// Packets delivered at the last timeout.
    delivered_then: Option<u32>,
}

impl Aside {
    fn place(&self, n: u32) -> usize {
        n as usize & (self.tags.len() - 1)
    }

    fn tag(&self, n: u32) -> u64 {
        if self.tags.is_empty() { 0 } else { self.tags[self.place(n)] }
    }

    /// Notes the tag of packet `n`, one of `under_way`.
    fn note(&mut self, n: u32, tag: u64, under_way: std::ops::Range<u32>) {
        if under_way.len() > self.tags.len() {
            if tag == 0 && self.tags.is_empty() {
                return; // it gives none
            }
            let length = under_way.len().next_power_of_two().max(16);
            let mut larger = vec![0; length].into_boxed_slice();
            for m in under_way.start..under_way.start + self.tags.len() as u32 {
                larger[m as usize & (length - 1)] = self.tag(m);
            }
            self.tags = larger;
        }
        let place = self.place(n);
        self.tags[place] = tag;
    }
}

/// An acknowledgement as the sender has understood it.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct News {
    /// Packets that the acknowledgement is the first to acknowledge, and packets that it reports as marked.
    pub(super) newly: u32,
    pub(super) marked: u32,
    /// It carries an echo.
    pub(super) echo: bool,
    /// The round trip that it is a sample of.
    pub(super) rtt: Option<u64>,
    /// The window was used.
    pub(super) used: bool,
}

/// Packets in bytes.
fn bytes(core: &Core, packets: u32) -> u64 {
    u64::from(packets) * core.control.packet_bytes()
}

/// The window is what the controller says.
fn follow(core: &mut Core, o: &Options) {
    if let Some((cwnd, ssthresh)) = core.control.own().and_then(|own| own.windows()) {
        (core.cwnd, core.ssthresh) = (cwnd.min(o.window.most()), ssthresh);
    }
}

impl Rack {
    /// Packet `seq` is sent at `now`, the first time or `again`; with it `in_flight` are in the network.
    pub(super) fn tell_own_sending(
        &mut self,
        core: &mut Core,
        now: u64,
        (seq, again): (u32, bool),
        (in_flight, restarts): (u32, bool),
        o: &Options,
    ) {
        let (window, is_alone) = (core.cwnd, core.outstanding() == 1);
        if let Some(own) = core.control.own() {
            own.begin(now, window);
            // Not the first packet of all, and not one of those that nothing has acknowledged.
            if restarts && seq > 0 && is_alone && !again {
                own.tell(now, |control| control.on_restart(now));
            }
        }
        let sent = Sent {
            now,
            number: seq.into(),
            bytes: bytes(core, 1),
            in_flight: bytes(core, in_flight.saturating_sub(1)),
            app_limited: self.delivery.as_ref().is_some_and(|delivery| delivery.app_limited != 0),
            retransmission: again,
        };
        let tag =
            core.control.own().map_or(0, |own| own.tell(now, |control| control.on_send(&sent)));
        self.aside.note(seq, tag, core.under_way());
        follow(core, o);
    }

    /// Tells of the losses that were found since, and how many there were.
    fn tell_own_losses(&mut self, core: &mut Core, now: u64) -> u32 {
        if core.state < State::Recovery {
            return 0;
        }
        let mut count = 0;
        let mut next = self.oldest_timed_out(core).then_some(core.una);
        while let Some(seq) = next.take().or_else(|| self.tell()) {
            let Some(lost) = self.delivery.as_mut().and_then(|each| each.on_lost(now, seq)) else {
                continue;
            };
            count += 1;
            let lost = Lost {
                now,
                number: seq.into(),
                bytes: bytes(core, 1),
                sent_at: self.sent_at(seq).time(),
                tag: self.aside.tag(seq),
                tx_in_flight: bytes(core, lost.tx_in_flight),
                lost_since_sent: bytes(core, lost.lost),
                app_limited: lost.app_limited,
                new_range: seq != std::mem::replace(&mut self.aside.past_lost, seq + 1),
            };
            if let Some(own) = core.control.own() {
                own.tell(now, |control| control.on_lost(&lost));
            }
        }
        count
    }

    fn tell_congestion(
        &self,
        core: &mut Core,
        now: u64,
        (kind, new_episode): (Kind, bool),
        [lost, ce]: [u32; 2],
    ) {
        let congestion = Congestion {
            now,
            kind,
            in_flight: bytes(core, self.pipe(core)),
            lost: bytes(core, lost),
            ce: ce.into(),
            recovery_point: core.end.into(),
            new_episode,
        };
        if let Some(own) = core.control.own() {
            own.tell(now, |control| control.on_congestion(&congestion));
        }
    }

    /// A repair or a reduction may have ended: its state was `before`.
    pub(super) fn tell_own_end(&self, core: &mut Core, now: u64, before: State) {
        if before > State::Open
            && core.state == State::Open
            && let Some(own) = core.control.own()
        {
            own.tell(now, |control| control.on_recovered(now));
        }
    }

    /// A loss that a probe has repaired is an episode that is over.
    #[cold]
    pub(super) fn tell_probed_loss(&self, core: &mut Core, now: u64, o: &Options) {
        core.tell_reduced = o.ecn.on;
        self.tell_congestion(core, now, (Kind::Loss, true), [1, 0]);
        if let Some(own) = core.control.own() {
            own.tell(now, |control| control.on_recovered(now));
        }
        follow(core, o);
    }

    /// The repair that went on, with a timeout or not, was needless.
    #[cold]
    pub(super) fn tell_own_undo(&self, core: &mut Core, now: u64, timed_out: bool, o: &Options) {
        let undo = Undo { now, kind: if timed_out { Kind::Timeout } else { Kind::Loss } };
        if let Some(own) = core.control.own() {
            own.tell(now, |control| control.on_undo(&undo));
        }
        follow(core, o);
    }

    /// The timer has run out, in a repair after another timeout or not, for what the window gave way for
    /// already or not.
    #[cold]
    pub(super) fn tell_own_timeout(
        &mut self,
        core: &mut Core,
        now: u64,
        (again, new_episode): (bool, bool),
        o: &Options,
    ) {
        let lost = self.tell_own_losses(core, now);
        let delivered = self.delivery.as_ref().map(|delivery| delivery.delivered);
        let nothing = std::mem::replace(&mut self.aside.delivered_then, delivered) == delivered;
        // RFC 9002 §7.6.2: not before there is a round trip.
        let persists = again && nothing && core.rtt.srtt() > 0;
        let kind = if persists { Kind::Persistent } else { Kind::Timeout };
        self.aside.episode = None;
        core.tell_reduced |= o.ecn.on && new_episode;
        self.tell_congestion(core, now, (kind, new_episode), [lost, 0]);
        follow(core, o);
    }

    /// An acknowledgement is dealt with, or time has told of losses.
    pub(super) fn follow_own(&mut self, core: &mut Core, now: u64, mut news: News, o: &Options) {
        let lost = self.tell_own_losses(core, now);
        let episode = self.aside.episode.take();
        if o.ecn.echo == Echo::UntilAnswered {
            // Such an echo tells that there was a mark, not how many, until it is answered.
            news.marked = u32::from(matches!(episode, Some((Kind::Ecn, _))));
        }
        if let Some((kind, new)) = episode {
            let kind = if lost > 0 { Kind::Loss } else { kind };
            self.tell_congestion(core, now, (kind, new), [lost, news.marked]);
        }
        if news.newly > 0 || news.marked > 0 {
            self.tell_own_ack(core, now, news);
        }
        follow(core, o);
    }

    fn tell_own_ack(&mut self, core: &mut Core, now: u64, news: News) {
        let in_flight = self.pipe(core);
        let in_recovery = matches!(core.state, State::Reducing | State::Recovery) || news.echo;
        let Self { delivery: Some(delivery), aside, .. } = self else { return };
        let Delivery { delivered, prior_in_flight, .. } = *delivery;
        let newest = delivery.newest();
        let sample = delivery.sample(now);
        let round_start = newest.is_some() && sample.prior_delivered >= aside.next_round;
        if round_start {
            aside.next_round = delivered;
        }
        let (largest, sent_at) = newest.unwrap_or_default();
        let packet = core.control.packet_bytes() as f64;
        let ack = Ack {
            now,
            acked: bytes(core, news.newly),
            ce_packets: news.marked.into(),
            largest: largest.into(),
            sent_at,
            tag: newest.map_or(0, |(n, _)| aside.tag(n)),
            rtt: news.rtt.unwrap_or(0),
            srtt: core.rtt.srtt(),
            rttvar: core.rtt.variation(),
            min_rtt: self.min_rtt,
            prior_in_flight: bytes(core, prior_in_flight),
            in_flight: bytes(core, in_flight),
            delivered: bytes(core, delivered),
            prior_delivered: bytes(core, sample.prior_delivered),
            lost: bytes(core, sample.lost),
            tx_in_flight: bytes(core, sample.tx_in_flight),
            interval: sample.interval,
            rate: sample.rate * packet * 1e9,
            app_limited: sample.app_limited,
            round_start,
            window_limited: news.used,
            in_recovery,
        };
        let limited = core.control.own().is_some_and(|own| {
            own.tell(now, |control| control.on_ack(&ack));
            own.is_app_limited()
        });
        if limited {
            delivery.limit(in_flight);
        }
    }

    /// The controller's timer has come.
    pub(in super::super) fn on_own_timer(&self, core: &mut Core, now: u64, o: &Options) {
        if let Some(own) = core.control.own() {
            own.wake(now);
        }
        follow(core, o);
    }
}
