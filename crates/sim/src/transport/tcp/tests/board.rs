//! The scoreboard of RACK beside a look through the window, on paths that lose and reorder at random.

use super::*;

/// Where a packet is, and when it comes there.
type Wire = Vec<(u64, Packet)>;

/// Sends all that may be sent, on a wire that loses and reorders it.
fn send(p: &mut Path, wire: &mut Wire, loss: f64, reordering: f64, rng: &mut aqm::Rng) {
    while let Some(packet) = p.send() {
        let late = if rng.chance(reordering) { rng.below(RTT as usize) as u64 } else { 0 };
        if !rng.chance(loss) {
            wire.push((p.now + RTT / 2 + late, packet));
        }
        p.now += MS / 10;
    }
}

/// Takes from a wire what comes first.
fn first(wire: &mut Wire) -> Option<(u64, Packet)> {
    let at = (0..wire.len()).min_by_key(|&i| wire[i].0)?;
    Some(wire.remove(at))
}

#[test]
fn the_scoreboard_is_what_a_look_through_the_window_finds() {
    let mut seen = [0; 3];
    for seed in 0..100 {
        let mut rng = aqm::Rng::new(seed, 0);
        let has_model = rng.chance(0.4);
        let control = if has_model { TcpName::Bbr1 } else { TcpName::Reno };
        let [timestamps, limits] = [rng.chance(0.5), rng.chance(0.5)];
        let window = 5 + rng.below(if limits { 20 } else { 200 }) as u32;
        let mut o = with_rack().with(|o| {
            o.control.name = control;
            o.control.has_model = has_model;
            o.recovery.timestamps = timestamps;
            o.window.receiver = window;
        });
        o.recovery.limited_transmit = u32::MAX;
        let mut p = Path::new(o);
        let (mut data, mut acks) = (Wire::new(), Wire::new());
        let (mut loss, mut reordering) = (0.0, 0.0);
        for step in 0..3000 {
            if step % 100 == 0 {
                loss = [0.0, 0.01, 0.05, 0.4, 1.0][rng.below(5)];
                reordering = [0.0, 0.0, 0.02, 0.2][rng.below(4)];
            }
            send(&mut p, &mut data, loss, reordering, &mut rng);
            let next = |wire: &Wire| wire.iter().map(|w| w.0).min().unwrap_or(u64::MAX);
            let [arrival, answer] = [&data, &acks].map(next);
            let deadline = p.sender.deadline();
            let at = arrival.min(answer).min(deadline);
            assert!(at < u64::MAX, "stuck");
            p.now = p.now.max(at);
            if at == deadline {
                p.sender.on_timer(p.now, &o);
            } else if at == arrival {
                let (_, packet) = first(&mut data).unwrap();
                let answers = p.receive(&[(packet.seq, false, false)], &[], &[]);
                let lost = rng.chance(loss / 2.0);
                acks.extend(
                    answers.into_iter().filter(|_| !lost).map(|ack| (p.now + RTT / 2, ack)),
                );
            } else {
                let (_, ack) = first(&mut acks).unwrap();
                p.sender.on_ack(p.now, &ack, &o);
            }
            let found = p.sender.check_board(has_model);
            (0..3).for_each(|i| seen[i] += u32::from(found[i]));
        }
    }
    assert!(seen.iter().all(|&times| times > 500), "{seen:?}");
}
