//! A set of packet numbers as the runs of which it consists: the scoreboard of selective acknowledgements.

use std::collections::VecDeque;
use std::ops::Range;

/// Numbers that follow one another.
#[derive(Clone, Copy, Default, Debug)]
struct Run {
    first: u32,
    end: u32,
    /// How many numbers came before it, from some start on that all runs share.
    before: u32,
}

impl Run {
    fn len(&self) -> u32 {
        self.end - self.first
    }
}

/// Stands for one run where there are several: it touches nothing.
const SEVERAL: Run = Run { first: u32::MAX, end: 0, before: 0 };

/// A set of packet numbers. What is asked at its ends takes a fixed time; elsewhere a search among the runs,
/// however long they are. Memory is taken when there is more than one run.
#[derive(Clone, Default, Debug)]
pub struct Runs {
    /// The only run, empty where there is none, or [`SEVERAL`].
    one: Run,
    /// In order; no two touch. Apart, because few flows have them.
    #[expect(clippy::box_collection, reason = "a flow is as small as it can be")]
    several: Option<Box<VecDeque<Run>>>,
}

impl Runs {
    /// Whether nothing is in it.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.one.first == self.one.end
    }

    /// The runs, if there are several.
    #[inline(always)]
    fn several(&self) -> Option<&VecDeque<Run>> {
        if self.one.first > self.one.end { self.several.as_deref() } else { None }
    }

    /// How many numbers are in it.
    #[inline]
    pub fn ones(&self) -> u32 {
        match self.several() {
            None => self.one.len(),
            Some(runs) => {
                let (front, back) = (runs[0], runs[runs.len() - 1]);
                back.before + back.len() - front.before
            }
        }
    }

    /// The first run that ends past `n`.
    #[inline]
    fn past(&self, n: u32) -> Option<Run> {
        match self.several() {
            None => (n < self.one.end).then_some(self.one),
            Some(runs) => search(runs, n),
        }
    }

    /// Whether `n` is in it.
    #[inline]
    pub fn contains(&self, n: u32) -> bool {
        self.past(n).is_some_and(|run| run.first <= n)
    }

    /// The lowest number from `from` on that is not in it.
    pub fn next_missing(&self, from: u32) -> u32 {
        match self.past(from) {
            Some(run) if run.first <= from => run.end,
            _ => from,
        }
    }

    /// How many numbers below `n` are in it.
    pub fn below(&self, n: u32) -> u32 {
        let first = self.several().map_or(self.one.before, |runs| runs[0].before);
        match self.past(n) {
            Some(run) => run.before - first + n.saturating_sub(run.first),
            None => self.ones(),
        }
    }

    /// The `k`-th highest number, counted from 1.
    pub fn nth_highest(&self, k: u32) -> Option<u32> {
        let Some(runs) = self.several() else {
            return (self.one.len() >= k).then(|| self.one.end - k);
        };
        let mut left = k;
        for run in runs.iter().rev() {
            if run.len() >= left {
                return Some(run.end - left);
            }
            left -= run.len();
        }
        None
    }

    /// Puts the numbers of `block` in, and calls `news` with each that was not there, in order.
    #[inline]
    pub fn insert(&mut self, block: Range<u32>, mut news: impl FnMut(u32)) {
        if block.is_empty() {
            return;
        }
        if self.is_empty() {
            self.one = Run { first: block.start, end: block.start, before: 0 };
        }
        let one = &mut self.one;
        if one.first <= block.end && block.start <= one.end {
            (block.start..one.first).for_each(&mut news);
            (one.end..block.end).for_each(&mut news);
            (one.first, one.end) = (one.first.min(block.start), one.end.max(block.end));
        } else {
            self.insert_among(block, news);
        }
    }

    /// [`Runs::insert`] where there are several runs, or will be.
    fn insert_among(&mut self, block: Range<u32>, mut news: impl FnMut(u32)) {
        let runs = self.several.get_or_insert_default();
        if self.one.first < self.one.end {
            runs.push_back(self.one);
            self.one = SEVERAL;
        }
        // The runs that it touches, from `at` on, become one.
        let at = match runs.back() {
            Some(back) if block.start <= back.end => {
                runs.partition_point(|run| run.end < block.start)
            }
            _ => runs.len(),
        };
        let (mut first, mut next, mut new, mut touched) = (block.start, block.start, 0, 0);
        for run in runs.range(at..).take_while(|run| run.first <= block.end) {
            first = first.min(run.first);
            (next..run.first).for_each(&mut news);
            new += run.first.saturating_sub(next);
            next = next.max(run.end);
            touched += 1;
        }
        (next..block.end).for_each(&mut news);
        new += block.end.saturating_sub(next);
        if new == 0 {
            return;
        }
        let end = next.max(block.end);
        if touched == 0 {
            let last = runs[runs.len() - 1];
            let before = runs.get(at).map_or(last.before + last.len(), |run| run.before);
            runs.insert(at, Run { first, end, before });
        } else {
            (runs[at].first, runs[at].end) = (first, end);
            runs.drain(at + 1..at + touched);
        }
        runs.range_mut(at + 1..).for_each(|run| run.before += new);
        self.settle();
    }

    /// Takes out what lies below `base`.
    #[inline]
    pub fn advance(&mut self, base: u32) {
        if !self.is_empty() {
            self.take_out_below(base);
        }
    }

    #[inline(never)]
    fn take_out_below(&mut self, base: u32) {
        if self.one.first < self.one.end {
            self.one.first = self.one.first.max(base).min(self.one.end);
            return;
        }
        let Some(runs) = &mut self.several else { return };
        while let Some(front) = runs.front_mut()
            && front.first < base
        {
            let out = front.end.min(base) - front.first;
            front.first += out;
            front.before += out;
            if front.first < front.end {
                break;
            }
            runs.pop_front();
        }
        self.settle();
    }

    /// One run stands alone.
    fn settle(&mut self) {
        if let Some(runs) = &mut self.several
            && runs.len() <= 1
        {
            self.one = runs.pop_front().unwrap_or_default();
        }
    }

    /// Takes out everything; the memory is kept.
    #[inline]
    pub fn clear(&mut self) {
        if self.one.first > self.one.end {
            self.several.iter_mut().for_each(|runs| runs.clear());
        }
        self.one = Run::default();
    }
}

/// The first of several runs that ends past `n`.
fn search(runs: &VecDeque<Run>, n: u32) -> Option<Run> {
    // Most of what is looked for lies before the first run or behind the last.
    match (runs.front(), runs.back()) {
        (Some(&front), _) if n < front.end => Some(front),
        (_, Some(back)) if n >= back.end => None,
        _ => runs.get(runs.partition_point(|run| run.end <= n)).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn behaves_as_a_naive_set() {
        let mut rng = aqm::Rng::new(4, 0);
        let (mut runs, mut naive, mut base) = (Runs::default(), BTreeSet::new(), 0);
        for step in 0..20_000 {
            match rng.below(10) {
                0 => {
                    base += rng.below(40) as u32;
                    runs.advance(base);
                    naive = naive.split_off(&base);
                }
                1 if step % 50 == 0 => {
                    runs.clear();
                    naive.clear();
                }
                _ => {
                    let first = base + rng.below(300) as u32;
                    let end = first + rng.below(if step % 5 == 0 { 60 } else { 4 }) as u32;
                    let mut news = Vec::new();
                    runs.insert(first..end, |n| news.push(n));
                    let expected: Vec<u32> = (first..end).filter(|&n| naive.insert(n)).collect();
                    assert_eq!(news, expected);
                }
            }
            let n = base + rng.below(400) as u32;
            assert_eq!(runs.ones() as usize, naive.len());
            assert_eq!(runs.is_empty(), naive.is_empty());
            assert_eq!(runs.contains(n), naive.contains(&n));
            assert_eq!(runs.below(n) as usize, naive.range(..n).count());
            assert_eq!(Some(runs.next_missing(n)), (n..).find(|n| !naive.contains(n)));
            for k in [1, 3, 1 + rng.below(200)] {
                assert_eq!(runs.nth_highest(k as u32), naive.iter().nth_back(k - 1).copied());
            }
            let list = || runs.several().into_iter().flatten();
            assert_ne!(list().count(), 1, "one run stands alone");
            let mut pairs = list().zip(list().skip(1));
            assert!(pairs.all(|(a, b)| a.end < b.first && a.before + a.len() == b.before));
        }
    }
}
