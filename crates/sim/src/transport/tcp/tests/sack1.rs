//! ns-2's recovery: each rule as a story, beside what RFC 6675 does where that is another thing.

use super::*;

fn as_ns2() -> Options {
    options(Variant::Sack).with(|o| {
        o.recovery.variant = Variant::Ns2;
        o.window.whole_threshold = true;
        o.recovery.past_timeout = 0;
    })
}

impl Path {
    /// The same as [`Path::deliver`], by acknowledgement: what each makes the sender send.
    pub(super) fn deliver_each(
        &mut self,
        sent: &[(u32, bool, bool)],
        drop: &[u32],
        mark: &[u32],
    ) -> Vec<Round> {
        let acks = self.receive(sent, drop, mark);
        self.now += RTT;
        let each = |ack: &Packet| {
            self.sender.on_ack(self.now, ack, &self.o);
            numbers(&self.send_all())
        };
        acks.iter().map(each).collect()
    }
}

/// The rounds that sent anything, each with the number of its acknowledgement, from 1 on.
fn by_ack(rounds: &[Round]) -> Vec<(usize, Round)> {
    let with = rounds.iter().enumerate().filter(|(_, round)| !round.is_empty());
    with.map(|(n, round)| (n + 1, round.clone())).collect()
}

/// Sixteen packets, the first two of them lost. The first two duplicates let two new ones out, the third the first
/// repair alone: 18 are outstanding, and three have left, so that 15 count as under way. The eleventh duplicate
/// brings that below the window of 8; RFC 6675 takes the second hole as lost, and goes on one acknowledgement sooner.
#[test]
fn what_was_lost_stays_counted() {
    for (o, second) in
        [(as_ns2(), 11), (options(Variant::Sack).with(|o| o.recovery.past_timeout = 0), 10)]
    {
        let (mut p, sent) = sixteen(o);
        let n = sent[0].0;
        let rounds = by_ack(&p.deliver_each(&sent, &[n, n + 1], &[]));
        let first = [(1, vec![n + 16]), (2, vec![n + 17]), (3, vec![n]), (second, vec![n + 1])];
        assert_eq!(rounds[..4], first, "{rounds:?}");
        assert_eq!(rounds[4], (second + 1, vec![n + 18]), "then something new");
        assert_eq!(p.sender.cwnd(), 8.0);
    }
}

/// Of a window of four, which limited transmit makes six, three count as under way at the third duplicate: with a
/// window of two there is no room. With room for two of one the first repair goes out alone all the same.
#[test]
fn the_first_repair_goes_out_alone() {
    let mut p = Path::new(as_ns2().with(|o| {
        o.recovery.limited_transmit = 0;
        o.window.initial = 5.0;
    }));
    let sent = p.send_all();
    // Five are outstanding, two under way by the count, and the window becomes 2.5; the fourth duplicate
    // leaves one under way.
    let rounds = p.deliver_each(&sent, &[0], &[]);
    assert_eq!(by_ack(&rounds), [(3, vec![0]), (4, vec![5])]);
    assert_eq!(p.sender.cwnd(), 2.5);
}

/// Every hole below the highest packet that arrived is repaired, though only one has arrived above the last.
#[test]
fn a_hole_needs_no_three_packets_above_it() {
    let (mut p, sent) = sixteen(as_ns2());
    let n = sent[0].0;
    let rounds = p.deliver_each(&sent, &[n, n + 14], &[]);
    let repaired: Vec<u32> = rounds.into_iter().flatten().filter(|&m| m < n + 16).collect();
    assert_eq!(repaired, [n, n + 14]);
}

/// A partial acknowledgement takes two off the count.
#[test]
fn a_partial_acknowledgement_lets_two_packets_out() {
    let (mut p, sent) = sixteen(as_ns2());
    let n = sent[0].0;
    // Both holes are repaired, and four new packets follow; the repair of the first lets out two.
    let next = p.deliver(&sent, &[n, n + 1], &[]);
    assert_eq!(numbers(&next)[2..], [n, n + 1, n + 18, n + 19, n + 20]);
    let rounds = p.deliver_each(&next[2..], &[n + 1], &[]);
    assert_eq!(by_ack(&rounds)[0], (1, vec![n + 21, n + 22]), "{rounds:?}");
}

/// A repair that is lost is found by the timer, however many packets arrive that were sent behind it.
#[test]
fn a_lost_repair_waits_for_the_timer() {
    let (mut p, sent) = sixteen(as_ns2());
    let n = sent[0].0;
    let mut next = p.deliver(&sent, &[n], &[]);
    next.retain(|s| s.0 != n);
    for _ in 0..3 {
        next = p.deliver(&next, &[], &[]);
        assert!(next.iter().all(|s| s.0 > n), "{next:?}");
    }
    assert_eq!(p.sender.counts().timeouts, 0);
    let again = numbers(&p.time_out());
    assert_eq!((again, p.sender.counts().timeouts), (vec![n], 1));
}

/// A recovery ends when what was outstanding at its begin is acknowledged; meanwhile the window stands, and an echo
/// changes nothing.
#[test]
fn an_echo_in_a_recovery_is_not_answered() {
    let (mut p, sent) = sixteen(as_ns2());
    let n = sent[0].0;
    let marked: Vec<u32> = (n + 6..n + 16).collect();
    let next = p.deliver(&sent, &[n], &marked);
    assert_eq!((p.sender.cwnd(), p.sender.counts().ecn_reductions), (8.0, 0));
    p.deliver(&next[..3], &[], &[]);
    assert_eq!((p.sender.cwnd(), p.sender.counts().ecn_reductions), (8.0, 0), "its end");
}

/// A packet lost after an echo is repaired without a second reduction.
#[test]
fn a_repair_behind_an_echo_reduces_nothing() {
    let (mut p, sent) = sixteen(as_ns2());
    let n = sent[0].0;
    let next = p.deliver(&sent, &[n + 4], &[n]);
    assert_eq!(p.sender.counts().ecn_reductions, 1);
    // The echo halves 16, three packets more are acknowledged with it, and the loss takes nothing.
    assert!(numbers(&next).contains(&(n + 4)));
    assert_eq!(p.sender.cwnd(), 8.0);
}

/// Behind a timeout duplicates repair nothing as long as what had been sent by then is not acknowledged, and the
/// packet behind that.
#[test]
fn the_first_packet_past_a_timeout_is_left_to_the_timer() {
    for (lost, repairs) in [(0, 0), (1, 1)] {
        let o = as_ns2().with(|o| o.window.whole_threshold = false);
        assert_eq!(repairs_past_a_timeout(o, lost), repairs, "{lost} lost");
    }
}

/// A timeout leaves half as threshold, another of the same packet two; but behind an echo the threshold stays.
#[test]
fn a_timeout_behind_an_echo_leaves_the_threshold() {
    for (marked, timeouts, grown) in
        [(false, 1, 8.0..9.0), (false, 2, 2.0..5.0), (true, 1, 7.0..9.0)]
    {
        let (mut p, mut sent) = sixteen(as_ns2());
        if marked {
            // The echo leaves 8; the next window is lost but for one packet, which lets out nothing.
            sent = p.deliver(&sent, &[], &[sent[0].0]);
            assert_eq!(p.sender.counts().ecn_reductions, 1);
        }
        let lost = numbers(&sent);
        p.deliver(&sent, &lost, &[]);
        for _ in 0..timeouts {
            sent = p.time_out();
        }
        assert_eq!(p.sender.counts().timeouts, timeouts);
        for _ in 0..3 {
            sent = p.deliver(&sent, &[], &[]);
        }
        let cwnd = p.sender.cwnd();
        assert!(grown.contains(&cwnd), "{marked}, {timeouts}: {cwnd}");
    }
}
