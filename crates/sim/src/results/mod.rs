//! Results: tables, transfers, delays, ways of datagrams, a journal of packets, fairness.

pub mod delays;
pub mod journal;
pub mod one_way;
pub mod registry;
pub mod table;
pub mod transfers;

/// Jain's fairness index of allocations: (Σx)² / (n·Σx²), 1/n … 1; 1 if all are zero. Fewer than two
/// have none: nobody could be treated worse.
pub fn jain(shares: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (n, sum, squares) = shares
        .into_iter()
        .fold((0.0, 0.0, 0.0), |(n, sum, squares), x| (n + 1.0, sum + x, squares + x * x));
    (n >= 2.0).then(|| if squares > 0.0 { sum * sum / (n * squares) } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn jain_s_ends() {
        assert_eq!(jain([5.0; 4]), Some(1.0));
        assert_eq!(jain([1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain([0.0; 2]), Some(1.0));
        assert_eq!([jain([]), jain([5.0])], [None, None]);
    }
}
