use super::naive::blue::{Blue, Settings};
use super::*;

prop_compose! {
    fn blue()(
        (initial, freeze_time, up, down) in (
            prop::sample::select(vec![0.0, 0.0, 0.3, 1.0]),
            prop::sample::select(vec![1, 100, 1_000_000, 5_000_000, 100_000_000]),
            0.0..0.6f64,
            0.0..0.2f64,
        ),
        (threshold, ecn, front, at_head, bytes) in
            (prop::option::of(0..12u64), prop::bool::weighted(0.8), any::<bool>(), any::<bool>(), any::<bool>()),
        (continuous, jitter, auto, weight, legacy, in_class) in
            (any::<bool>(), prop::sample::select(vec![0.0, 0.0, 0.5, 1.0]), any::<bool>(), 0.0..1.0f64,
             any::<bool>(), any::<bool>()),
        (update, grow, shrink) in
            (pick(&["additive", "multiplicative", "mixed"]), 1.0..2.0f64, 0.5..1.0f64),
    ) -> Settings {
        // A short freeze makes the model step through millions of decrements of an idle link.
        let freeze_time = if continuous { u64::max(freeze_time, 1_000_000) } else { freeze_time };
        let jitter = if continuous { jitter / 2.0 } else { jitter };
        let threshold = threshold.map(|l| if bytes { l * 700 } else { l });
        let at_head = at_head && ecn;
        Settings {
            initial, freeze_time, up, down, threshold, ecn, front, at_head, bytes, continuous, jitter, update,
            grow, shrink, auto, weight, legacy, in_class: in_class && !continuous,
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn blue_is_its_model(c in blue(), room in room(), ops in traffic()) {
        let settings = [
            ("initial", c.initial.to_string()),
            ("freeze_time", format!("{}ns", c.freeze_time)),
            ("increment", c.up.to_string()),
            ("decrement", c.down.to_string()),
            ("threshold", c.threshold.map_or("none".into(), |l| amount(l, c.bytes))),
            ("ecn", c.ecn.to_string()),
            ("drop", if c.front { "front" } else { "tail" }.into()),
            ("signal", if c.at_head { "head" } else { "arriving" }.into()),
            ("mode", if c.bytes { "bytes" } else { "packets" }.into()),
            ("idle_decay", if c.continuous { "continuous" } else { "event" }.into()),
            ("freeze_jitter", c.jitter.to_string()),
            ("update", c.update.into()),
            ("increase_factor", c.grow.to_string()),
            ("decrease_factor", c.shrink.to_string()),
            ("freeze", if c.auto { "auto" } else { "fixed" }.into()),
            ("delay_weight", c.weight.to_string()),
            ("legacy_mark_increment", c.legacy.to_string()),
            ("legacy_updates", c.in_class.to_string()),
        ];
        compare("blue", &settings, room, &ops, Blue::new(c))?;
    }
}
