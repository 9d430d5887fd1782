use super::callers::{LONGEST, may_ask};
use super::request::parse;
use super::*;
use crate::namespace::ends::End;
use crate::options::Change;
use proptest::prelude::*;

#[test]
fn a_request_is_read_as_it_was_meant() {
    let change = Change {
        way: Some("up".into()),
        rate: Some("20mbit".parse().unwrap()),
        delay: None,
        buffer: Some("1.5bdp".parse().unwrap()),
        aqm: Some("sfb".into()),
        params: vec![("increment".into(), "0.01".into())],
        jitter: Some("5ms".parse().unwrap()),
        reorder: Some(true),
        loss: Some("gemodel 1% 25%".parse().unwrap()),
        duplicate: Some("0.1%".parse().unwrap()),
        corrupt: None,
        overhead: Some("pppoe-ptm".parse().unwrap()),
        mpu: Some(64),
        policer: Some("none".parse().unwrap()),
        policer_burst: Some("30kB".parse().unwrap()),
        shaper: Some("5mbit".parse().unwrap()),
        shaper_burst: None,
        shaper_peak: Some("none".parse().unwrap()),
        shaper_peak_burst: Some("3kB".parse().unwrap()),
    };
    for request in [
        Request::Show { classes: false },
        Request::Set(Box::new(change)),
        Request::Set(Box::default()),
        Request::Join { end: End::Near },
        Request::Join { end: End::Far },
        Request::Upgrade {},
    ] {
        let line = serde_json::to_string(&request).unwrap();
        assert_eq!(format!("{:?}", parse(&line).unwrap()), format!("{request:?}"));
    }
}

#[test]
fn what_is_no_request_is_refused_with_the_reason() {
    for (line, words) in [
        ("", "it ends within"),
        ("hello", "no request in JSON"),
        ("[]", "no request in JSON"),
        ("{}", "no request in JSON"),
        (r#"{"show": {}} x"#, "more than one request"),
        (r#"{"show": {}, "set": {}}"#, "no request in JSON"),
        (r#"{"show": {"all": 1}}"#, "show.all: unknown key `all`"),
        (r#""show""#, "allowed: a table"),
        (r#"{"stop": {}}"#, "not allowed: `stop`; allowed: show, set, join, upgrade"),
        (r#"{"join": {"end": "middle"}}"#, "join.end: not allowed: `middle`; allowed: near or far"),
        (r#"{"join": {"ends": "near"}}"#, "unknown key `ends`; allowed: end"),
        (r#"{"set": {"rte": "1mbit"}}"#, "set.rte: unknown key `rte`; allowed: way, rate, delay"),
        (r#"{"set": {"rate": "1mbps"}}"#, "set.rate: \"1mbps\": allowed: "),
        (r#"{"set": {"rate": 5}}"#, "set.rate: not allowed: `5`; allowed: text in quotes"),
        (
            r#"{"set": {"reorder": "no"}}"#,
            "set.reorder: not allowed: \"no\"; allowed: true or false",
        ),
        (r#"{"set": {"way": "left"}}"#, "set.way: \"left\": allowed: up, down"),
        (r#"{"set": {"aqm": null}}"#, "set.aqm: not allowed: null; allowed: text in quotes"),
        (
            r#"{"set": {"params": {"p": 1}}}"#,
            "set.params.p: not allowed: `1`; allowed: text in quotes",
        ),
        (r#"{"set": {"rate": "1mbit", "rate": "2mbit"}}"#, "given twice: `rate`"),
    ] {
        let why = parse(line).unwrap_err().what;
        assert!(why.contains(words), "{line}: {why}");
        let ours = ["at line", "invalid type", "variant", "field", "struct"];
        assert!(!ours.iter().any(|word| why.contains(word)), "{line}: {why}");
    }
    assert!(parse(&"[".repeat(LONGEST)).is_err(), "deep nesting ends");
}

#[test]
fn only_the_owner_and_root_may_ask() {
    let [root, one, other] = [0, 1000, 1001].map(Uid::from_raw);
    assert!(may_ask(one, one) && may_ask(root, one));
    assert!(!may_ask(other, one) && !may_ask(one, root));
}

#[test]
fn a_name_is_that_of_a_file() {
    assert_eq!(name("lab-1_b").as_deref(), Ok("lab-1_b"));
    for bad in ["", "../x", "a/b", ".", "a b", &"x".repeat(33)] {
        assert!(name(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn any_line_is_read_without_harm(line in ".{0,200}", value in any::<u64>()) {
        _ = parse(&line);
        _ = parse(&format!("{{\"set\": {{\"rate\": \"{line}\", \"delay\": \"{value}s\"}}}}"));
    }
}
