use aqm::{Cause, Counters};
use link::QueueStats;

use super::*;
use crate::Run;

fn value(counters: &Counters, name: &str) -> Value {
    let summary = QueueStats::new(0).summary(1, counters);
    measured(&summary).find(|(own, _)| *own == name).unwrap_or_else(|| panic!("no {name}")).1
}

fn type_of(column: &Column) -> ColumnKind {
    match column {
        Column::Count(_) => ColumnKind::Count,
        Column::Real(_) => ColumnKind::Real,
        Column::Text(_) => ColumnKind::Text,
    }
}

/// What a run gives is what is declared, name by name, in order and in type.
#[test]
fn tables_are_as_declared() {
    let text = "duration = \"2s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10mbit\"\n\
                delay = \"5ms\"\njitter = \"1ms\"\n\
                [[queue]]\nlink = \"a->b\"\naqm = \"red\"\nbuffer = \"50p\"\n\
                class = [{ name = \"all\", rate = \"9mbit\" }]\n\
                [[link]]\nfrom = \"a\"\nto = \"c\"\nrate = \"50mbit\"\ndelay = \"0s\"\n\
                duplex = false\nwifi = {}\n[[queue]]\nlink = \"a->c\"\naqm = \"droptail\"\nbuffer = \"50p\"\n\
                [[link]]\nfrom = \"c\"\nto = \"a\"\nrate = \"50mbit\"\ndelay = \"0s\"\nduplex = false\n\
                [[traffic]]\ntransport = \"sack\"\napp = \"finite\"\nsize = \"20kB\"\n\
                from = [\"a\"]\nto = [\"b\"]\n\
                [[traffic]]\ntransport = \"cbr\"\nrate = \"64kbit\"\n\
                from = [\"a\"]\nto = [\"c\"]\n\
                [measure]\ninterval = \"500ms\"\ngroups = true\ndelays = true\ncalls = true\nflows = true\ncontrol = true\n";
    let scenario = crate::capture::scenario(text, "x").unwrap();
    let outcome = Run::new(scenario, text, "x").unwrap().finish();
    for (spec, table) in outcome.tables() {
        let declared: Vec<_> = spec.named().collect();
        let made: Vec<_> = table.columns().map(|(name, c)| (name, type_of(c))).collect();
        assert_eq!(made[..declared.len()], declared, "{}", spec.name);
        let signals = spec.name == "series" || spec.name == "summary";
        assert!(signals || made.len() == declared.len(), "{}", spec.name);
        // Of controllers and algorithms that are brought along, which this run has not got.
        let brought = [CONTROL_SIGNALS.name, AUTORATE.name].contains(&spec.name);
        assert!(table.columns().all(|(_, c)| (c.len() > 0) != brought), "{}", spec.name);
    }
    // What a table needs is what it has no rows without.
    let (unmeasured, _) = text.split_once("[measure]").unwrap();
    let scenario = crate::capture::scenario(unmeasured, "x").unwrap();
    for (spec, table) in Run::new(scenario, unmeasured, "x").unwrap().finish().tables() {
        let empty = table.columns().all(|(_, c)| c.len() == 0);
        let brought = spec.name == AUTORATE.name;
        assert_eq!(empty, brought || !spec.needs.is_empty(), "{}", spec.name);
    }
    let names: Vec<_> = outcome.tables().map(|(spec, _)| spec.name).skip(1).collect();
    let simulated: Vec<_> = TABLES.iter().filter(|t| t.simulated).map(|t| t.name).collect();
    assert_eq!(names, simulated);
}

#[test]
fn where_nothing_arrives_nothing_is_lost() {
    let none = Counters::default();
    assert_eq!(["loss", "mark_rate"].map(|name| value(&none, name)), [Value::Real(0.0); 2]);
}

#[test]
fn a_share_is_one_at_most_whatever_waited_before_the_window() {
    let mut counters = Counters::default();
    counters.arrived.count(1000);
    (0..72).for_each(|_| counters.dropped[Cause::Early as usize].count(1000));
    (0..18).for_each(|_| counters.marked[Cause::Early as usize].count(1000));
    (0..8).for_each(|_| counters.departed.count(1000));
    let found = ["loss", "mark_rate"].map(|name| value(&counters, name));
    assert_eq!(found, [Value::Real(72.0 / 80.0), Value::Real(18.0 / 80.0)]);
}

#[test]
fn drops_stand_at_their_cause() {
    let mut counters = Counters::default();
    for (cause, drops) in Cause::ALL.into_iter().zip(1..) {
        (0..drops).for_each(|_| counters.dropped[cause as usize].count(1000));
    }
    for (cause, drops) in Cause::ALL.into_iter().zip(1..) {
        assert_eq!(value(&counters, &format!("drops_{}", cause.name())), Value::Count(drops));
    }
}

/// The root has what its queue has, in the window alone, and the leaves together too. A leaf whose ceil is its
/// rate borrows nothing.
#[test]
fn classes_add_up() {
    let text = "duration = \"4s\"\nwarmup = \"2s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
                rate = \"20mbit\"\ndelay = \"5ms\"\n\
                [[queue]]\nlink = \"a->b\"\naqm = \"droptail\"\nbuffer = \"50p\"\n\
                [[queue.class]]\nname = \"all\"\nrate = \"9mbit\"\n\
                [[queue.class]]\nname = \"each\"\nparent = \"all\"\nrate = \"1mbit\"\n\
                ceil = \"9mbit\"\npeer = \"0..1\"\neach = \"peer\"\n\
                [[queue.class]]\nname = \"rest\"\nparent = \"all\"\nrate = \"2mbit\"\n\
                [[traffic]]\nfrom = [\"a\"]\nto = [\"b\"]\ntransport = \"sack\"\npeer = 1\n\
                [[traffic]]\nfrom = [\"a\"]\nto = [\"b\"]\ntransport = \"cbr\"\nrate = \"3mbit\"\npeer = 7\n";
    let scenario = crate::capture::scenario(text, "x").unwrap();
    let outcome = Run::new(scenario, text, "x").unwrap().finish();
    let Column::Text(names) = outcome.classes.column("class").unwrap() else { panic!("no names") };
    assert_eq!(names[..], ["all", "each[0]", "each[1]", "rest"].map(String::from));
    for key in ["arrivals", "departures", "drops", "marks", "departures_bytes", "drops_bytes"] {
        let of = |row| outcome.classes.number(key, row).unwrap();
        assert_eq!(of(0), outcome.queues.number(key, 0).unwrap(), "{key}");
        assert_eq!(of(0), of(1) + of(2) + of(3), "{key}");
    }
    let of = |key, row| outcome.classes.number(key, row).unwrap();
    let rates = [0, 1, 2, 3].map(|row| of("throughput_bps", row) / 1e6);
    assert!(rates[0] <= 9.02 && rates[1] == 0.0 && rates[2] > 6.0, "{rates:?}");
    assert!((rates[3] - 2.0).abs() < 0.02, "{rates:?}");
    assert_eq!((of("borrowed", 0), of("borrowed", 3)), (0.0, 0.0));
    assert!(of("borrowed", 2) > 0.8 * of("departures", 2), "{}", of("borrowed", 2));
}
