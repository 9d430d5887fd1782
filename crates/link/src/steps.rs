//! Values over time: the rate, the delay or the loss of a link that varies.

/// A value from each of some instants on: once, after which the last one holds, or again and again.
#[derive(Clone, PartialEq, Debug)]
pub struct Steps<T> {
    /// Times in ns, ascending, the first 0.
    steps: Box<[(u64, T)]>,
    /// After which time all begins again, ns.
    period: Option<u64>,
}

impl<T: Clone> Steps<T> {
    /// These times with other values.
    pub fn map<U>(&self, f: impl Fn(&T) -> U) -> Steps<U> {
        let steps = self.steps.iter().map(|(at, value)| (*at, f(value))).collect();
        Steps { steps, period: self.period }
    }

    /// After which time all begins again, ns, if it does.
    pub fn period(&self) -> Option<u64> {
        self.period
    }

    /// Rows that [`Steps::new`] makes the same of.
    pub fn rows(&self) -> impl Iterator<Item = (u64, T)> {
        let last = self.period.map(|period| (period, self.steps[self.steps.len() - 1].1.clone()));
        self.steps.iter().cloned().chain(last)
    }
}

impl<T: Copy> Steps<T> {
    /// Of times in ns and values. If they `repeat`, the last time is that at which all begins again,
    /// and its value is not used. `None` if the first time is not 0, times do not ascend, or nothing
    /// is there to repeat.
    pub fn new(rows: &[(u64, T)], repeat: bool) -> Option<Self> {
        let (last, before) = rows.split_last()?;
        let ascending = rows[0].0 == 0 && rows.is_sorted_by(|a, b| a.0 < b.0);
        let (steps, period) = if repeat { (before, Some(last.0)) } else { (rows, None) };
        (ascending && !steps.is_empty()).then(|| Self { steps: steps.into(), period })
    }

    /// One value for ever.
    pub fn constant(value: T) -> Self {
        Self { steps: [(0, value)].into(), period: None }
    }

    /// The value at `now` (ns).
    pub fn at(&self, now: u64) -> T {
        self.steps[self.locate(now).0].1
    }

    /// Its steps: times in ns and values.
    pub fn steps(&self) -> &[(u64, T)] {
        &self.steps
    }

    /// The shortest time that a value holds, ns; [`u64::MAX`] if there is but one, for ever.
    pub fn least_gap(&self) -> u64 {
        let ends = self.steps.iter().skip(1).map(|step| step.0).chain(self.period);
        self.steps.iter().zip(ends).map(|(step, end)| end - step.0).min().unwrap_or(u64::MAX)
    }

    /// The number of the step at `now` (ns), and when the round that it belongs to began.
    pub(crate) fn locate(&self, now: u64) -> (usize, u64) {
        let began = self.period.map_or(0, |period| now - now % period);
        (self.steps.partition_point(|(from, _)| *from <= now - began) - 1, began)
    }

    /// When a step of the round that began at `began` ends, ns; `None` for never.
    pub(crate) fn end(&self, step: usize, began: u64) -> Option<u64> {
        let end = self.steps.get(step + 1).map(|(at, _)| *at).or(self.period);
        end.map(|end| began.saturating_add(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_holds_until_the_next() {
        let rows = [(0, 'a'), (5, 'b'), (7, 'c')];
        let once = Steps::new(&rows, false).unwrap();
        assert_eq!([0, 4, 5, 6, 7, 1000].map(|at| once.at(at)), ['a', 'a', 'b', 'b', 'c', 'c']);
        let again = Steps::new(&rows, true).unwrap();
        assert_eq!(
            [0, 4, 5, 6, 7, 11, 12, 700].map(|at| again.at(at)),
            ['a', 'a', 'b', 'b', 'a', 'a', 'b', 'a']
        );
        assert_eq!(once.rows().collect::<Vec<_>>(), rows);
        assert_eq!(again.rows().map(|row| row.0).collect::<Vec<_>>(), [0, 5, 7]);
    }

    #[test]
    fn what_is_no_course_of_time_is_refused() {
        for (rows, repeat) in [
            (&[][..], false),
            (&[(1, 0)], false),
            (&[(0, 0), (0, 1)], false),
            (&[(0, 0), (5, 0), (4, 0)], false),
            (&[(0, 0)], true),
        ] {
            assert_eq!(Steps::new(rows, repeat), None, "{rows:?}");
        }
    }

    #[test]
    fn the_shortest_of_all_values_counts() {
        let rows = [(0, 'a'), (5, 'b'), (7, 'c')];
        assert_eq!(Steps::new(&rows, false).unwrap().least_gap(), 2);
        assert_eq!(Steps::new(&[(0, 'a'), (5, 'b'), (8, 'c')], true).unwrap().least_gap(), 3);
        assert_eq!(Steps::constant('a').least_gap(), u64::MAX);
    }
}
