use link::varying::mean;
use proptest::prelude::*;

use super::*;

#[test]
fn formats_tell_the_same() {
    let csv = "# of ours\ntime_s,loss,rate_mbps,delay_ms\n0,0,10,20\n0.5,0.01,0,30.5\n2,1,4,20\n";
    let toml = "steps = [[\"0s\", \"10mbit\"], [\"500ms\", \"0bit\"], [\"2s\", \"4mbit\"]]";
    let half = 500 * MS;
    for repeat in [false, true] {
        let rates = read(&RATE, csv, repeat).unwrap();
        assert_eq!(read(&RATE, toml, repeat).unwrap(), rates);
        assert_eq!(rates.steps()[..2], [(0, 10_000_000), (half, 0)]);
        assert_eq!(read(&RATE, &format!("\u{feff}{csv}"), repeat).unwrap(), rates);
        assert_eq!(read(&RATE, &to_csv(&rates), repeat).unwrap().steps(), rates.steps());
    }
    let delays = read(&DELAY, csv, false).unwrap();
    assert_eq!(delays.steps()[1..], [(half, 30_500_000), (2000 * MS, 20 * MS)]);
    assert_eq!(read(&LOSS, csv, true).unwrap().steps(), [(0, 0.0), (half, 0.01)]);
}

/// Two opportunities in the first millisecond (0 counts as one of it), none in the second, one in
/// the third: 24, 0 and 12 Mb/s, which is a mean of 12.
#[test]
fn opportunities_are_rates() {
    let rates = read(&RATE, "0\n1\n3\n", true).unwrap();
    assert_eq!(rates.steps(), [(0, 24_000_000), (MS, 0), (2 * MS, 12_000_000)]);
    assert_eq!((rates.period(), mean(&rates)), (Some(3 * MS), 12e6));
    assert_eq!(
        read(&RATE, "2\n", false).unwrap().steps(),
        [(0, 0), (MS, 12_000_000), (2 * MS, 6_000_000)]
    );
}

/// A head is one of CSV whatever its columns are called.
#[test]
fn unknown_columns_are_named() {
    for head in ["\"t\",\"rate\"", "t rate_bps", "a;b"] {
        let wrong = read(&RATE, &format!("{head}\n0,10\n"), false).unwrap_err();
        assert!(wrong.starts_with("line 1: a column is missing: one of time_s"), "{wrong}");
    }
}

#[test]
fn tables_of_other_programs_are_read() {
    let expected = [(0, 10_000_000), (1500 * MS, 2_500_000)];
    for text in [
        "0\t10\n1.5\t2.5\n3\t2.5\n",
        "0,10\n1.5,2.5\n3,2.5\n",
        "0 10\n1.5  2.5\n3 2.5\n",
        "\"time_s\",\"rate_mbps\"\n0,10\n1.5,2.5\n3,2.5\n",
        "\"\",\"time_s\",\"rate_mbps\"\n\"1\",0,10\n\"2\",1.5,2.5\n\"3\",3,2.5\n",
        "\"time_s\" \"rate_mbps\"\n\"1\" 0 10\n\"2\" 1.5 2.5\n\"3\" 3 2.5\n",
        "# numpy\n0.000000e+00 1.000000e+01\n1.500000e+00 2.500000e+00\n3.0e+00 2.5E0\n",
        "time_s,rate_mbps\n1700000000,10\n1700000001.5,2.5\n1700000003,2.5\n",
        "1700000000 10\n1700000001.5 2.5\n1700000003 2.5\n",
        "# time_s rate_bps\n0.0e+00 1.0e+07\n1.5e+00 2.5e+06\n3.0e+00 2.5e+06\n",
        "# time_ms,rate_kbps\n0,10000\n1500,2500\n3000,2500\n",
        "# time rate\n0 10\n1.5 2.5\n3 2.5\n",
    ] {
        let rates = read(&RATE, text, true).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(rates.steps()[..2], expected, "{text}");
    }
    let rates = read(&RATE, "0 12000000\n1 12000000\n", true).unwrap_err();
    assert!(rates.contains("time_s,rate_bps"), "{rates}");
    let delays = read(&DELAY, "# time_s delay_us\n0 20000\n1 30000\n", false).unwrap();
    assert_eq!(delays.steps(), [(0, 20 * MS), (1000 * MS, 30 * MS)]);
}

#[test]
fn what_is_wrong_is_said() {
    let wrong = |text: &str| read(&RATE, text, true).unwrap_err();
    for (text, said) in [
        ("", "nothing in it"),
        ("5\n3", "line 2: milliseconds must not descend"),
        ("5\nx", "line 2: 'x': whole milliseconds are wanted"),
        ("5.000e+00\n6.000e+00", "line 1: '5.000e+00': whole milliseconds"),
        ("-1\n2", "line 1: '-1': whole milliseconds"),
        ("0\n0", "ends at 0 ms"),
        ("0", "ends at 0 ms"),
        ("time_s,rate\n0,1mbit\n0,1mbit", "times must ascend"),
        ("time_s,rate\n1,1mbit\n2,1mbit", "first time must be 0"),
        ("time_s,rate\n0,1mbit", "two times at least"),
        ("time_s,rate\n0,0\n1,1mbit", "end with a rate above 0"),
        ("time_s,rate\n0,1mbps", "line 2: '1mbps': a rate such as"),
        ("time_s;rate_mbps\n0;10,5", "line 2: '10,5': a rate such as 45mbit"),
        ("time_s;rate_mbps\n0;10,5", "; decimals stand behind a point"),
        ("time,rate\n2024-01-01,1mbit", "line 2: '2024-01-01': a time such as"),
        ("time_s,rate\n0,1bit", "line 2: '1bit': a rate of 0, or 1kbit"),
        ("time_s,rate\n0", "line 2: 2 values"),
        ("time_s,delay_ms\n0,1", "one of rate_bps"),
        ("steps = 5", "invalid type"),
    ] {
        let found = wrong(text);
        assert!(found.contains(said), "{text}: {found}");
    }
    assert!(read(&LOSS, "1\n2\n", true).is_err());
}

proptest! {
    #[test]
    fn nothing_panics(text in "[0-9a-z_,.\n =\\[\\]\"]{0,80}", repeat: bool) {
        _ = read(&RATE, &text, repeat);
        _ = read(&DELAY, &text, repeat);
        _ = read(&LOSS, &text, repeat);
    }

    /// Mahimahi's opportunities come back unchanged.
    #[test]
    fn opportunities_come_back(gaps in prop::collection::vec(0u64..5, 1..200)) {
        let times = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) });
        let lines: Vec<String> = times.map(|at: u64| at.max(1).to_string()).collect();
        let text = lines.join("\n") + "\n";
        let rates = read(&RATE, &text, true).unwrap();
        prop_assert_eq!(to_mahimahi(&rates, rates.period().unwrap()), text);
    }

    #[test]
    fn models_have_the_mean_asked_for(which in 0..Model::ALL.len(), seed: u64, mbit in 1u64..1000) {
        let model = Model::ALL[which];
        let (asked, length) = (Rate::from_mbit(mbit), Duration::from_secs(60));
        let rates = model.make(asked, length, seed);
        prop_assert_eq!(rates.period(), Some(length.as_nanos()));
        let mean = mean(&rates);
        prop_assert!((mean / (mbit as f64 * 1e6) - 1.0).abs() < 0.01, "{}", mean);
        prop_assert_eq!(rates, model.make(asked, length, seed));
    }
}

/// Pinned, so that a trace that somebody made can be made again.
#[test]
fn models_are_pinned() {
    let sums = Model::ALL.map(|model| {
        let rates = model.make(Rate::from_mbit(10), Duration::from_secs(60), 1);
        let mix = |sum: u64, (at, rate): (u64, u64)| (sum ^ at).wrapping_mul(31).wrapping_add(rate);
        rates.rows().fold(0, mix)
    });
    let pinned = [
        6_335_541_415_583_557_962,
        8_809_383_579_323_425_525,
        12_231_724_661_423_656_656,
        7_885_188_424_196_273_110,
        7_782_837_035_801_576_884,
    ];
    assert_eq!(sums, pinned);
}
