//! What `bluewater explain` computes about queue disciplines.

use std::num::NonZeroU32;

use aqm::policy::sfb;
use aqm::{AnyQdisc, Env, Limit, Qdisc, Rate, Rng, Size};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What the queue discipline `name` remembers with a buffer such as `100p` or `200kB`, in bytes.
pub(crate) fn state<'py>(
    py: Python<'py>,
    name: &str,
    buffer: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let limit = match buffer.parse() {
        Ok(Size::Packets(n)) => Limit::packets(n),
        Ok(Size::Bytes(n)) => Limit::bytes(n),
        _ => None,
    };
    let limit = limit.ok_or_else(|| PyValueError::new_err("not a buffer"))?;
    let env = Env::new(limit, Rate::from_mbit(45));
    let queue = AnyQdisc::<()>::build(name, &[], &env, &mut Rng::new(0, 0))
        .map_err(|e| PyValueError::new_err(format!("{e:?}")))?;
    let state = queue.state();
    let dict = PyDict::new(py);
    for (key, bytes) in [
        ("queue", state.queue),
        ("per_flow", state.per_flow),
        ("flows", state.flows),
        ("per_packet", state.per_packet),
    ] {
        dict.set_item(key, bytes)?;
    }
    Ok(dict)
}

/// Levels, bins in each, and the probability that SFB takes a responsive flow for a nonresponsive
/// one, for each number of levels; and the best levels and bins.
pub(crate) type Shapes = (Vec<(u32, u32, f64)>, (u32, u32));

/// What at most `total` bins can be made into.
pub(crate) fn shapes(total: NonZeroU32, nonresponsive: u32) -> Shapes {
    let all = sfb::shapes(total.get())
        .map(|(levels, bins)| (levels, bins, sfb::misclassification(levels, bins, nonresponsive)))
        .collect();
    (all, sfb::best_shape(total.get(), nonresponsive))
}
