//! What the laws are run for.

use aqm::any::PRESET;
use aqm::param::{Condition, Kind, Param};
use aqm::{About, CATALOG};

use crate::wanted;

pub(crate) type Settings = Vec<(String, String)>;

/// Settings that are of interest together.
const TOGETHER: &[(&str, &str)] = &[
    ("blue", "threshold=30% mode=bytes increment=0.3 freeze_time=1ms"),
    ("blue", "idle_decay=continuous increment=0.5 decrement=0.01 freeze_time=1ms"),
    ("blue", "idle_decay=continuous freeze=auto freeze_jitter=1 update=mixed freeze_time=1us"),
    ("blue", "drop=front signal=head increment=1 freeze_time=0s"),
    ("blue", "legacy_mark_increment=true threshold=0p increment=1 decrement=1 ecn=false"),
    ("blue", "legacy_updates=true legacy_mark_increment=true threshold=1p increment=0.3"),
    ("red", "w_q=1 min_th=1p max_th=10p spacing=wait"),
    ("red", "w_q=0.3 mode=bytes gentle=true max_p=0.1 above_max=drop"),
    ("red", "w_q=0.5 spacing=uniform-exact ns2_rules=true"),
    ("red", "w_q=0.5 idle=halvings ns2_rules=true min_th=1p max_th=3p"),
    ("red", "w_q=0.5 max_p=0.5 spacing=ahead ns2_rules=true mode=bytes"),
    ("wred", "w_q=1 min_th=1p max_th=3p min_th_high=6p max_th_high=9p max_p_high=1"),
    (
        "wred",
        "average=coupled w_q=1 min_th=1p max_th=3p min_th_high=6p max_th_high=9p max_p_high=1",
    ),
    ("wred", "w_q=0.5 min_th=0p max_th=4p min_th_high=2p classes=drop-precedence ecn=false"),
    ("ared-feng", "w_q=0.7 min_th=1p max_th=4p"),
    ("ared", "w_q=0.7 min_th=1p max_th=4p interval=1ms"),
    ("ared", "mode=bytes target=100ms w_q=0.1"),
    ("sfb", "bins=3 bin_size=2p increment=0.5 decrement=0.1 penalty_rate=1mbit penalty_burst=2p"),
    (
        "sfb",
        "bins=2 levels=3 bin_size=3kB mode=bytes increment=1 freeze_time=1ms hash=moving hash_interval=3ms",
    ),
    (
        "sfb",
        "bins=2 bin_size=1p increment=1 hash=double-buffered hash_interval=5ms warm_up=2ms overflow=all",
    ),
    ("sfb", "bins=2 bin_size=1p increment=0.7 penalty=fair-share share_interval=10ms bin_limit=5p"),
    (
        "sfb",
        "bins=2 bin_size=1p increment=0.7 decrement=0.2 penalty_raises=true nonresponsive_from=0.6 \
         assignment=distinct hash=moving hash_interval=3ms",
    ),
    ("sfb", "bins=2 bin_size=1p increment=0.7 penalty=boxtime-random boxtime=2ms mark_up_to=0.3"),
    ("choke", "w_q=1 min_th=0p max_th=8p max_p=0"),
    ("m-choke", "candidates=64 w_q=1 min_th=1p max_th=10p mode=bytes"),
    (
        "red-pd",
        "target_rtt=5s k=1 least_drop_rate=1 monitored=2 history=3 min_th=1p max_th=4p w_q=0.5",
    ),
    (
        "red-pd",
        "target_rtt=5s mode=bytes identification=single-list burst=4 unresponsive_always=true \
      test_drops=1 test_increase=1.1 least_drop_rate=1",
    ),
    ("red-pd", "wanted_drop_rate=0.01 max_rtt=60s m=1 k=1 interval_bounds=true"),
    ("fred", "w_q=1 min_th=2p max_th=4p max_p=1"),
    ("fred", "w_q=0.3 min_th=3p max_th=6p many_flow=true min_q=0 ecn=false"),
    ("sred", "zombies=3 overwrite=0.5 max_p=1"),
    ("sred", "zombies=7 alpha=0.3 variant=simple mode=bytes ecn=false max_p=0.9"),
    ("red-penalty-box", "w_q=1 min_th=0p max_th=10p log=5 rtt=100ms penalty=per-flow release=20ms"),
    ("red-penalty-box", "w_q=1 min_th=1p max_th=4p log=3 rtt=1s boxes=2 release=1ms"),
    ("csfq", "k=5ms k_alpha=5ms k_c=5ms threshold=0p"),
    ("csfq", "k=1ms k_alpha=20ms k_c=2ms threshold=20% flows=3 only_congested=true"),
    ("rem", "gamma=0.1 phi=2 target=3p interval=1ms"),
    ("rem", "gamma=0.01 phi=2 target=10p mode=bytes ecn=false"),
    ("pi", "a=0.1 b=0.05 q_ref=3p interval=1ms"),
    ("pi", "a=0.3 b=0.1 q_ref=5kB mode=bytes ecn=false"),
    ("avq", "gamma=0.5 alpha=5 virtual_buffer=3kB"),
    ("a-choke", "regions=3 w_q=0.5 min_th=0p max_th=8p gentle=true"),
    ("sfq", "queues=2 perturb=1h queue_limit=3p aqm=red w_q=0.5 drop=front"),
    ("sfq", "queues=3 quantum=300 aqm=red mode=bytes w_q=1 min_th=1kB max_th=5kB"),
    ("drr", "quantum=100 drop=front"),
    ("drr", "quantum=10000"),
    ("fq", "flow_limit=3 quantum=100 initial_quantum=0 ce_threshold=1ms"),
    (
        "fq",
        "maxrate=2mbit low_rate_threshold=1mbit quantum=1500 initial_quantum=1500 refill_delay=1ms",
    ),
    ("fq", "maxrate=500kbit ce_threshold=0s"),
    ("fq-codel", "queues=2 quantum=300 target=1ms interval=2ms drop_batch=1"),
    ("fq-codel", "queues=3 target=1ms interval=2ms mtu=0 ce_threshold=1ms ecn=false"),
    ("cake", "sets=1 diffserv=diffserv8 rtt=1ms target=0s mtu=0"),
    ("cake", "sets=1 diffserv=besteffort isolation=hosts rtt=2ms ecn=false"),
    ("cake", "sets=2 diffserv=precedence isolation=dual-srchost rtt=1us mtu=100"),
    ("cake", "sets=1 diffserv=diffserv8 ingress=true rtt=1ms mtu=0 ack_filter=on"),
    ("cake", "sets=1 unlimited=true ingress=true autorate_ingress=true rtt=1ms"),
    ("cake", "sets=1 autorate_ingress=true memlimit=5kB rtt=1ms target=0s"),
    ("cake", "sets=1 queues=3 shared_rate=3mbit memlimit=5kB rtt=1ms ack_filter=on"),
    ("cake", "sets=1 queues=2 unlimited=true diffserv=diffserv8 rtt=1ms target=0s"),
    ("fq-codel", "queues=3 memory_limit=4kB drop_batch=3"),
    ("codel", "target=1ms interval=2ms mtu=0"),
    ("codel", "target=1ms interval=1us ecn=false"),
    ("codel", "target=2ms interval=5ms ce_threshold=1ms"),
    ("cobalt", "target=1ms interval=2ms mtu=0 increment=0.3 decrement=0.1"),
    ("cobalt", "target=1ms interval=1us ecn=false mtu=0"),
    ("docsis-pie", "target=1ms t_update=1ms alpha=1000 beta=100 max_burst=3ms burst_reset=5ms"),
    ("pi2", "target=1ms t_update=1ms alpha=100 beta=100 signals=random"),
    ("pi2", "target=1ms t_update=1ms alpha=100 beta=10 ecn=false"),
    ("dualpi2", "target=1ms t_update=1ms alpha=100 beta=100 signals=random"),
    ("dualpi2", "target=1ms t_update=1ms alpha=100 beta=100 signals=random-twice spare=3028"),
    ("dualpi2", "target=1ms t_update=1ms alpha=100 signals=random-twice decided=arrival"),
    ("dualpi2", "target=1ms t_update=1ms alpha=100 overload=overflow scheduler=wrr-kept"),
    (
        "dualpi2",
        "target=1ms t_update=1ms alpha=100 beta=10 k=1 scheduler=ts-fifo tshift=2ms th_len=0",
    ),
    ("dualpi2", "protection=queue aging=1mbit critical_delay=1ms critical_score=1ms buckets=1"),
    ("dualpi2", "protection=queue min_th=0s range=2ms critical_score=0s max_score=5ms"),
    ("dualpi2", "min_th=1us range=0s th_len=0 classic_share=0.5 low_latency=any-ect"),
    ("curvy-red", "min_th=0s range_c=5ms gamma=1 u=3 scheduler=wrr"),
    ("curvy-red", "min_th=1ms range_c=2ms gamma=0.3 k=1 step=0s low_latency=any-ect"),
    ("fq-pie", "queues=2 quantum=300 target=1ms t_update=1ms max_burst=0s alpha=100 beta=100"),
    ("gsp", "threshold=2p interval=1ms alpha=10 tau=1ms ecn=false"),
    ("gsp", "by=delay target=1ms interval=2ms tau=5ms max_time=10ms"),
    ("pie", "target=1ms t_update=1ms max_burst=0s alpha=100 beta=100"),
    ("pie", "target=1ms t_update=1ms max_burst=5ms alpha=10 beta=100 mode=bytes derandomise=true"),
    (
        "pie",
        "target=1ms t_update=1ms max_burst=0s alpha=100 delay=departure-rate dq_threshold=3000",
    ),
    ("sfred", "bins=3 bin_size=2p w_q=0.7 max_p=1 penalty_rate=1mbit"),
    ("sfred", "bins=2 bin_size=3kB w_q=1 beta=9 mode=bytes hash=double-buffered hash_interval=3ms"),
];

/// In place of a setting: the queue behind this filter, with parameters under which it acts on the
/// traffic of the laws.
pub(crate) const FILTER: (&str, &str) = ("prefilter", "red-pd");
pub(crate) const FILTER_SETTINGS: [(&str, &str); 3] =
    [("target_rtt", "5s"), ("k", "1"), ("least_drop_rate", "1")];

/// Everything that the laws are run for.
pub(crate) fn cases() -> Vec<(&'static About, Settings)> {
    let mut cases = Vec::new();
    for entry in CATALOG.iter().filter(|entry| wanted(entry.name)) {
        cases.push((entry, Settings::new()));
        for p in (entry.parameters)() {
            let values: Vec<String> = match p.kind {
                Kind::Choice(words) => words.iter().map(ToString::to_string).collect(),
                Kind::Flag => vec!["true".into(), "false".into()],
                Kind::DsField => vec!["0x1/0x3".into(), "0xb8/0xfc".into()],
                _ => p
                    .allowed
                    .split_once(" … ")
                    .map_or(vec![], |(low, high)| vec![low.to_string(), high.to_string()]),
            };
            let own = |v| [vec![(p.name.to_string(), v)], beside(entry, &p)].concat();
            cases.extend(values.into_iter().map(|v| (entry, own(v))));
        }
        cases.extend(
            entry
                .presets
                .iter()
                .map(|(preset, _)| (entry, vec![(PRESET.to_string(), preset.to_string())])),
        );
        cases.push((entry, vec![(FILTER.0.into(), FILTER.1.into())]));
        for (_, text) in TOGETHER.iter().filter(|(name, _)| *name == entry.name) {
            let pairs = text.split(' ').filter_map(|pair| pair.split_once('='));
            cases.push((entry, pairs.map(|(k, v)| (k.into(), v.into())).collect()));
        }
    }
    assert!(!cases.is_empty(), "BLUEWATER_ONLY names no queue discipline");
    cases
}

/// What has to stand beside a parameter for it to be allowed.
fn beside(entry: &About, p: &Param) -> Settings {
    let table = (entry.parameters)();
    let of = |name: &str| table.iter().find(|other| other.name == name);
    let unmet = |condition: &&Condition| {
        let default = of(condition.name).map(|other| &other.default[..]).unwrap_or_default();
        condition.texts.contains(&default) != condition.one_of
    };
    let settings = |any: &&[Condition]| {
        let first = any.iter().all(|each| unmet(&each)).then(|| any.first())??;
        let other = of(first.name)?;
        let low = other.allowed.split(" … ").next();
        let text = if first.one_of { first.texts[0] } else { low? };
        Some([vec![(other.name.to_string(), text.to_string())], beside(entry, other)].concat())
    };
    p.with.iter().filter_map(settings).flatten().collect()
}
