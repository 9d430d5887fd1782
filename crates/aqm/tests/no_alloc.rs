//! No queue discipline takes memory after it is built: 100 000 operations for each algorithm of the
//! catalogue under an allocator that counts.

use std::hint::black_box;

use crate::counting::counted;
use crate::{Numbered, To};
use aqm::{
    AnyQdisc, CATALOG, Cx, Duration, Ecn, Env, FlowKey, Instant, Limit, Meta, Qdisc, Rate, Rng,
};

#[test]
fn the_counter_counts() {
    assert_eq!(counted(|| drop(black_box(Box::new(1)))).1, [1, 0]);
    assert_eq!(counted(|| black_box(Box::new(1_u64))).1, [1, 8]);
}

#[test]
fn no_algorithm_allocates_after_construction() {
    for entry in CATALOG {
        let mut rng = Rng::new(1, 0);
        let mut dice = Rng::new(2, 0);
        let mut now = Instant::ZERO;
        let limit = Limit::packets(50).unwrap();
        let env = Env { now, ..Env::new(limit, Rate::from_mbit(8)) };
        let mut q = AnyQdisc::<Numbered>::build(entry.name, &[], &env, &mut rng).unwrap();
        let mut signals = 0.0;
        let ((), [taken, _]) = counted(|| {
            for i in 0..100_000 {
                now += Duration::from_nanos(dice.bits() % 2_000_000);
                let mut cx = Cx { now, rng: &mut rng };
                if q.poll_at().is_some_and(|at| at <= now) {
                    q.on_timer(&mut cx, &mut To(&mut ()));
                }
                // Three arrivals to two departures for a while, then the other way round.
                let arrive = dice.below(5) < if i / 1000 % 2 == 0 { 3 } else { 2 };
                if arrive {
                    let ecn = if dice.chance(0.5) { Ecn::Ect0 } else { Ecn::NotEct };
                    let flow = FlowKey(dice.below(1000) as u64);
                    q.enqueue(
                        Meta { flow, len: 1000, ecn, arrived: now },
                        Numbered::plain(i),
                        &mut cx,
                        &mut To(&mut ()),
                    );
                } else {
                    black_box(q.dequeue(&mut cx, &mut To(&mut ())));
                }
                q.observe(now, &mut |_, value| signals += value);
            }
        });
        assert_eq!(taken, 0, "{}", entry.name);
        assert!(q.counters().all_dropped().packets > 0, "{} was not put to work", entry.name);
    }
}
