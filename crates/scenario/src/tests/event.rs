use super::*;
use crate::event::Change;

/// Two links, and a flow of BBR with a schedule; with this event.
fn with_event(event: &str) -> String {
    format!(
        "duration = \"10s\"\n\
         link = [{{ from = \"s\", to = \"R\", rate = \"1gbit\", delay = \"1ms\" }}, \
         {{ from = \"R\", to = \"b\", rate = \"50mbit\", delay = \"50ms\" }}]\n\
         queue = [{{ link = \"R->b\", aqm = \"droptail\", buffer = \"100p\" }}]\n\
         [[traffic]]\nname = \"f\"\ntransport = \"bbr\"\nfrom = [\"s\"]\nto = [\"b\"]\n\
         app = \"schedule\"\nsteps = [[\"0s\", \"max\"]]\n\
         [[traffic]]\nname = \"g\"\ntransport = \"cbr\"\nrate = \"1mbit\"\nfrom = [\"s\"]\nto = [\"b\"]\n\
         [[event]]\n{event}\n"
    )
}

#[test]
fn an_event_says_when_and_what() {
    let text = with_event(
        "when = { flow = \"f\", enters = \"drain\" }\n\
         set = { \"link.1.rate\" = \"20mbit\", \"link.1.loss\" = \"4%\", \"link.1.delay\" = \"1ms\", \
         \"traffic.0.rate\" = \"0bit\" }",
    );
    let scenario = Scenario::from_toml(&text, "x").unwrap_or_else(|e| panic!("{e}"));
    let event = &scenario.event[0];
    assert_eq!((event.when.nth, event.when.after.0), (1, Duration::ZERO));
    assert_eq!(event.changes.len(), 4);
    assert!(event.changes.contains(&Change::Loss(1, 0.04)), "{:?}", event.changes);
    assert!(event.changes.contains(&Change::Delay(1, Duration::from_millis(1))));
    let edges = scenario.topology().unwrap().links;
    assert_eq!(edges[2].least_delay(), 1_000_000, "the way out of the second link");
    assert!(edges[2].impairs() && edges[3].impairs() && !edges[0].impairs());
    let echo = scenario.to_toml();
    assert_eq!(Scenario::from_toml(&echo, "echo").unwrap(), scenario);
}

#[test]
fn what_is_wrong_with_an_event_is_said() {
    let drain = "when = { flow = \"f\", enters = \"drain\" }\n";
    for (event, key, part) in [
        ("when = { flow = \"h\", enters = \"drain\" }\nset = {}", "event[0].when.flow", "f, g"),
        ("when = { flow = \"g\", enters = \"drain\" }\nset = {}", "event[0].when.flow", "TCP"),
        ("when = { flow = \"f\", enters = \"drian\" }\nset = {}", "event[0].when.enters", "cruise"),
        ("when = { flow = \"f\", enters = \"up\", nth = 0 }\nset = {}", "event[0].when.nth", "1"),
        (&format!("{drain}set = {{}}"), "event[0].set", "at least one"),
        (
            &format!("{drain}set = {{ \"link.2.rate\" = \"1mbit\" }}"),
            "event[0].set.\"link.2.rate\"",
            "link.0 … link.1",
        ),
        (
            &format!("{drain}set = {{ \"link.01.rate\" = \"1mbit\" }}"),
            "event[0].set.\"link.01.rate\"",
            "link.0 … link.1",
        ),
        (
            &format!("{drain}set = {{ \"link.1.rate\" = \"0bit\" }}"),
            "event[0].set.\"link.1.rate\"",
            "a rate",
        ),
        (
            &format!("{drain}set = {{ \"traffic.1.rate\" = \"1mbit\" }}"),
            "event[0].set.\"traffic.1.rate\"",
            "schedule",
        ),
        (
            &format!("{drain}set = {{ \"link.1.jitter\" = \"1ms\" }}"),
            "event[0].set.\"link.1.jitter\"",
            "link.N.rate",
        ),
    ] {
        let e = fails(&with_event(event));
        assert_eq!(e.key, key, "{e}");
        assert!(e.to_string().contains(part), "{e}");
    }
}
