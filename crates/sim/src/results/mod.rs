//! Results: tables, transfers, delays, ways of datagrams, a journal of packets and their kinds, fairness.

pub mod delays;
pub(crate) mod distinct;
pub mod journal;
pub mod kind;
pub mod one_way;
pub mod registry;
pub mod table;
pub mod transfers;

/// Jain's fairness index of allocations: (Σx)² / (n·Σx²), 1/n … 1. Fewer than two have none, since
/// nobody could be treated worse, nor have those of which nobody got anything: nothing was shared.
pub fn jain(shares: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (n, sum, squares) = shares
        .into_iter()
        .fold((0.0, 0.0, 0.0), |(n, sum, squares), x| (n + 1.0, sum + x, squares + x * x));
    (n >= 2.0 && squares > 0.0).then(|| sum * sum / (n * squares))
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn jain_s_ends() {
        assert_eq!(jain([5.0; 4]), Some(1.0));
        assert_eq!(jain([1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!([jain([]), jain([5.0]), jain([0.0; 2])], [None; 3]);
    }
}
