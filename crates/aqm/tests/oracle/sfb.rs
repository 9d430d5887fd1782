use super::naive::sfb::{Rule, Settings, Sfb};
use super::*;

prop_compose! {
    fn settings()(
        (levels, bins, size, limit, all) in
            (1..4u32, 1..5u32, 0..4u64, prop::option::of(0..6u64), any::<bool>()),
        (bytes, ecn, mark_up_to, distinct) in (
            any::<bool>(),
            prop::bool::weighted(0.8),
            prop::sample::select(vec![0.0, 0.5, 1.0]),
            any::<bool>(),
        ),
        (hash, ms, warm_up) in
            (
            pick(&["static", "moving", "double-buffered"]),
            1..300u64,
            prop::option::of(0..200u64),
        ),
        (by_length, kept, full_teaches) in any::<(bool, bool, bool)>(),
        (penalty, rate, burst, boxtime, jitter, share_ms) in (
            pick(&["rate", "tokens", "boxtime", "boxtime-random", "fair-share"]),
            100_000..8_000_000u64,
            0..4u64,
            0..9_000_000u64,
            0.0..=1.0f64,
            1..100u64,
        ),
        rule in rule(),
    ) -> Settings {
        let unit = if bytes { 700 } else { 1 };
        // RED needs room between its thresholds.
        let size = if matches!(rule, Rule::Red { .. }) { size + 1 } else { size };
        Settings {
            levels, bins, size: size * unit, limit: limit.map(|l| l * unit), all, bytes, ecn,
            mark_up_to, distinct, hash, interval: ms * 1_000_000, warm_up: warm_up.map(|ms| ms * 1_000_000),
            by_length, kept, full_teaches,
            penalty, rate, burst: burst * 500, boxtime, jitter,
            share_interval: share_ms * 1_000_000, rule,
        }
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    let freeze = prop::sample::select(vec![0, 0, 1, 1_000_000]);
    let from = prop::sample::select(vec![0.5, 0.9, 1.0]);
    let w_q = prop::sample::select(vec![0.002, 0.1, 0.5, 0.9, 1.0]);
    prop_oneof![
        (0.0..=1.0f64, 0.0..0.5f64, freeze, any::<bool>(), from).prop_map(
            |(up, down, freeze, penalty_raises, from)| {
                Rule::Blue { up, down, freeze, penalty_raises, from }
            }
        ),
        (0.0..0.7f64, 0.05..1.0f64, w_q, 1.0..4.0f64, 1.0..4.0f64, 0.01..=1.0f64).prop_map(
            |(min_th, room, w_q, alpha, beta, max_p)| {
                Rule::Red { min_th, max_th: min_th + room, w_q, alpha, beta, max_p }
            }
        ),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn sfb_and_sfred_are_their_models(c in settings(), room in room(), ops in traffic()) {
        let mut settings = vec![
            ("levels", c.levels.to_string()),
            ("bins", c.bins.to_string()),
            ("bin_size", amount(c.size, c.bytes)),
            ("bin_limit", c.limit.map_or("none".into(), |l| amount(l, c.bytes))),
            ("overflow", if c.all { "all" } else { "any" }.into()),
            ("mode", if c.bytes { "bytes" } else { "packets" }.into()),
            ("ecn", c.ecn.to_string()),
            ("mark_up_to", c.mark_up_to.to_string()),
            ("assignment", if c.distinct { "distinct" } else { "hash" }.into()),
            ("hash", c.hash.into()),
            ("hash_interval", format!("{}ns", c.interval)),
            ("warm_up", c.warm_up.map_or("none".into(), |ns| format!("{ns}ns"))),
            ("warm_up_by", if c.by_length { "length" } else { "verdict" }.into()),
            ("hash_change", if c.kept { "kept" } else { "afresh" }.into()),
            ("full_teaches", c.full_teaches.to_string()),
            ("penalty", c.penalty.into()),
            ("penalty_rate", format!("{}bit", c.rate)),
            ("penalty_burst", amount(c.burst, true)),
            ("boxtime", format!("{}ns", c.boxtime)),
            ("boxtime_jitter", c.jitter.to_string()),
            ("share_interval", format!("{}ns", c.share_interval)),
        ];
        let name = match c.rule {
            Rule::Blue { up, down, freeze, penalty_raises, from } => {
                settings.extend([
                    ("increment", up.to_string()),
                    ("decrement", down.to_string()),
                    ("freeze_time", format!("{freeze}ns")),
                    ("penalty_raises", penalty_raises.to_string()),
                    ("nonresponsive_from", from.to_string()),
                ]);
                "sfb"
            }
            Rule::Red { min_th, max_th, w_q, alpha, beta, max_p } => {
                settings.extend([
                    ("min_th", min_th.to_string()),
                    ("max_th", max_th.to_string()),
                    ("w_q", w_q.to_string()),
                    ("alpha", alpha.to_string()),
                    ("beta", beta.to_string()),
                    ("max_p", max_p.to_string()),
                ]);
                "sfred"
            }
        };
        compare(name, &settings, room, &ops, Sfb::new(c))?;
    }
}
