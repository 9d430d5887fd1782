//! The nodes that flows go from and to.

use aqm::Rng;
use scenario::traffic::Pattern;

/// The nodes that the flows of a group go from and to.
pub(super) enum Pairs {
    /// Each flow draws one of these and one of those.
    Drawn(Vec<usize>, Vec<usize>),
    /// One flow after another takes the next pair, from the first again after the last.
    Fixed(Vec<(usize, usize)>),
}

impl Pairs {
    /// The pairs of a pattern, which is drawn from `rng`.
    pub(super) fn new(
        pattern: Option<Pattern>,
        mut from: Vec<usize>,
        mut to: Vec<usize>,
        mut rng: Rng,
    ) -> Self {
        match pattern {
            None => Self::Drawn(from, to),
            Some(Pattern::Permutation) => {
                // Each permutation without a node that sends to itself is as likely: more than a third
                // of all are such.
                loop {
                    shuffle(&mut to, &mut rng);
                    if from.iter().zip(&to).all(|(a, b)| a != b) {
                        return Self::Fixed(from.into_iter().zip(to).collect());
                    }
                }
            }
            Some(Pattern::Incast) => {
                let receiver = to[rng.below(to.len())];
                from.retain(|&node| node != receiver);
                shuffle(&mut from, &mut rng);
                Self::Fixed(from.into_iter().map(|sender| (sender, receiver)).collect())
            }
        }
    }

    /// The nodes of the group's flow `k`, which draws from `rng`.
    pub(super) fn of(&self, k: u32, rng: &mut Rng) -> (usize, usize) {
        match self {
            Self::Drawn(from, to) => {
                let (a, mut b) = (from[rng.below(from.len())], to[rng.below(to.len())]);
                // The scenario was checked: there is another one.
                while a == b {
                    b = to[rng.below(to.len())];
                }
                (a, b)
            }
            Self::Fixed(pairs) => pairs[k as usize % pairs.len()],
        }
    }
}

/// Fisher and Yates, each order as likely.
fn shuffle(nodes: &mut [usize], rng: &mut Rng) {
    for last in (1..nodes.len()).rev() {
        nodes.swap(last, rng.below(last + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pattern: Pattern, from: &[usize], to: &[usize], seed: u64) -> Vec<(usize, usize)> {
        match Pairs::new(Some(pattern), from.to_vec(), to.to_vec(), Rng::new(seed, 0)) {
            Pairs::Fixed(pairs) => pairs,
            Pairs::Drawn(..) => Vec::new(),
        }
    }

    #[test]
    fn in_a_permutation_each_sends_to_one_other_and_each_is_sent_to() {
        let all: Vec<usize> = (0..9).collect();
        for seed in 0..50 {
            let pairs = pairs(Pattern::Permutation, &all, &all, seed);
            let (from, mut to): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
            to.sort_unstable();
            assert_eq!((&from, &to), (&all, &all));
            assert!(pairs.iter().all(|(a, b)| a != b), "{pairs:?}");
        }
    }

    /// Of four nodes there are nine permutations without a fixed point.
    #[test]
    fn each_permutation_is_drawn() {
        let all = [0, 1, 2, 3];
        let drawn: std::collections::HashSet<_> =
            (0..300).map(|seed| pairs(Pattern::Permutation, &all, &all, seed)).collect();
        assert_eq!(drawn.len(), 9);
    }

    #[test]
    fn in_an_incast_all_others_send_to_one() {
        let all: Vec<usize> = (0..9).collect();
        let found = pairs(Pattern::Incast, &all, &all, 1);
        let receiver = found[0].1;
        let mut from: Vec<usize> = found.iter().map(|pair| pair.0).collect();
        assert!(found.iter().all(|pair| pair.1 == receiver));
        from.push(receiver);
        from.sort_unstable();
        assert_eq!(from, all);
        assert!((2..50).any(|seed| pairs(Pattern::Incast, &all, &all, seed)[0].1 != receiver));
    }

    #[test]
    fn a_flow_never_draws_itself() {
        let mut rng = Rng::new(1, 0);
        let drawn = Pairs::new(None, vec![0, 1], vec![1, 0], Rng::new(1, 1));
        let both: std::collections::HashSet<_> = (0..40).map(|k| drawn.of(k, &mut rng)).collect();
        assert_eq!(both, [(0, 1), (1, 0)].into());
    }
}
