//! All comparisons, in the order of the page, and how they are measured.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sim::ScenarioError;

use crate::{
    Case, Setting, dctcp_response, delayed_ack_response, each, linux, linux_accecn, linux_bbr,
    linux_cake, linux_dctcp, ns2, ns2_steps, prague, queues, red_pd, tcp_response, testbed,
};

/// The name of a part of the comparison, and what gives its settings.
pub type Part = (&'static str, fn() -> Vec<Setting>);

/// All parts.
pub const PARTS: [Part; 5] = [
    ("closed", closed),
    ("ns2", || {
        let parts = [
            ns2::means,
            ns2::between,
            ns2::datagrams,
            ns2::tfrc,
            red_pd::settings,
            ns2_steps::settings,
        ];
        parts.into_iter().flat_map(|part| part()).collect()
    }),
    ("linux", || {
        let parts = [
            linux::settings,
            linux::tcp_settings,
            linux_bbr::settings,
            linux_dctcp::settings,
            linux_accecn::settings,
            linux_cake::settings,
        ];
        parts.into_iter().flat_map(|part| part()).collect()
    }),
    ("prague", prague::settings),
    ("testbed", testbed::settings),
];

/// Closed forms.
fn closed() -> Vec<Setting> {
    let p = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1];
    let variants = ["newreno", "sack"].into_iter().flat_map(|variant| p.map(|p| (variant, p)));
    let mut settings = each([()], queues);
    settings.extend(each(variants, tcp_response));
    settings.extend(each([0.0005, 0.001, 0.002], delayed_ack_response));
    settings.extend(each([0.01, 0.02, 0.05, 0.1], dctcp_response));
    settings
}

/// The cases of all settings, in their order, measured on all processors.
///
/// # Errors
/// See [`ScenarioError`].
pub fn measure(settings: &[Setting]) -> Result<Vec<Case>, ScenarioError> {
    let next = AtomicUsize::new(0);
    let worker = || -> Result<Vec<(usize, Vec<Case>)>, ScenarioError> {
        let mut done = Vec::new();
        while let Some((n, compare)) = {
            let n = next.fetch_add(1, Ordering::Relaxed);
            settings.get(n).map(|compare| (n, compare))
        } {
            done.push((n, compare()?));
        }
        Ok(done)
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let done = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .map(|w| w.join().expect("a comparison panicked"))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let mut done: Vec<_> = done.into_iter().flatten().collect();
    done.sort_by_key(|(n, _)| *n);
    Ok(done.into_iter().flat_map(|(_, cases)| cases).collect())
}
