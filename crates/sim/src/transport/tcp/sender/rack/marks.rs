//! How the sender reads the counter of AccECN (RFC 9768).

use crate::transport::tcp::receiver::FIRST_COUNT;

/// The most packets over which the share of marks is averaged: about those of the shortest round trips.
const MEMORY: f32 = 32.0;
/// How many times more frequent than lately marks are believed to be. Where four marks are expected, eight or
/// more come in 5 % of cases (Poisson); where more are expected, twice as many are rarer.
const SUDDEN: f32 = 2.0;
/// After so many packets without an exact acknowledgement, acknowledgements are taken for thinned out on the
/// way, or few by intention, not for lost (appendix A.2.1). The appendix and Linux look at the mean number of
/// packets for each acknowledgement, which cannot be told apart from the loss of half of them.
const THINNED: u32 = 64;

/// The sender's reading of the counter so far.
#[derive(Clone, Debug)]
pub struct Marks {
    /// The marks, modulo eight (s.cep).
    told: u8,
    /// The share of marks lately, and over how many packets. It begins as if one of two packets had been
    /// marked: every number of marks is then as likely as another.
    share: f32,
    known: f32,
    /// Packets acknowledged since the share was learned.
    since: u32,
}

impl Default for Marks {
    fn default() -> Self {
        Self { told: FIRST_COUNT, share: 0.5, known: 2.0, since: 0 }
    }
}

impl Marks {
    /// How many marks an acknowledgement reports with the field `ace`, which is the first to acknowledge
    /// `newly` packets.
    ///
    /// For fewer than eight packets the number is exact, and such acknowledgements give the share of marks.
    /// For more, the counter may have wrapped unseen, where acknowledgements were lost or overtaken. It is
    /// then taken to have wrapped as often as is likely under prevailing conditions (§3.2.2.5.2, the safest
    /// likely case, by the formula of appendix A.2.1): to no more marks than there were packets, to no more
    /// than [`SUDDEN`] times those that the share predicts, and not at all if no exact number has come for
    /// long ([`THINNED`]). More marks than packets are believed, since a packet may have come twice. An
    /// acknowledgement of nothing new was overtaken and is not read.
    pub fn told(&mut self, ace: u8, newly: u32) -> u32 {
        if newly == 0 {
            return 0;
        }
        let least = u32::from(ace.wrapping_sub(self.told) % 8);
        self.told = ace;
        if newly < 8 {
            self.learn(least.min(newly), newly);
            return least;
        }
        self.since = self.since.saturating_add(newly);
        let likely = (SUDDEN * self.share * newly as f32) as u32;
        let most = likely.min(newly);
        if most < least || self.since > THINNED {
            return least;
        }
        most - (most - least) % 8
    }

    /// Takes into the share that of `newly` packets `marked` were marked.
    fn learn(&mut self, marked: u32, newly: u32) {
        let [marked, newly] = [marked, newly].map(|n| n as f32);
        self.share = (self.share * self.known + marked) / (self.known + newly);
        self.known = (self.known + newly).min(MEMORY);
        self.since = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thirteen packets an acknowledgement, and no mark: at first the counter may have wrapped, later a
    /// filter must thin acknowledgements out. After acknowledgements of one packet each, all of them marked,
    /// a jump counts again.
    #[test]
    fn what_is_thinned_out_for_long_has_not_come_round() {
        let mut marks = Marks::default();
        let told: Vec<u32> = (0..200).map(|_| marks.told(5, 13)).collect();
        assert!(told.iter().all(|told| [0, 8].contains(told)));
        let doubted = told.iter().position(|&told| told == 0);
        assert_eq!(doubted, Some(4), "65 packets");
        assert_eq!(marks.told(7, 13), 2, "a mark is told");
        (0..200).for_each(|n| assert_eq!(marks.told((n % 8) as u8, 1), 1));
        assert_eq!(marks.told(7, 13), 8);
    }

    /// The marks that the sender counts and those that there were: of `packets` a `share` is marked, evenly,
    /// two are acknowledged together, and `lost` of a hundred acknowledgements are lost.
    fn lose(marks: &mut Marks, packets: u32, share: f64, lost: u32) -> (u32, u32) {
        let (mut random, mut newly, mut told, mut due) = (1u32, 0, 0, 0.0);
        let (mut counter, mut count) = (marks.told, 0);
        for n in 1..=packets {
            due += share;
            if due >= 1.0 {
                (due, counter, count) = (due - 1.0, (counter + 1) % 8, count + 1);
            }
            newly += 1;
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if n % 2 == 0 && ((random >> 16) % 100 >= lost || n == packets) {
                told += marks.told(counter, std::mem::take(&mut newly));
            }
        }
        (told, count)
    }

    /// §3.2.2.5.2, "under prevailing conditions": eight marks of eight to twenty packets are not likely where
    /// none, or one of a hundred or of twenty, was marked lately.
    #[test]
    fn lost_acknowledgements_are_no_marks_where_marks_are_rare() {
        for lost in [0, 20, 40, 50] {
            for share in [0.0, 0.01, 0.05] {
                let mut marks = Marks::default();
                lose(&mut marks, 100, 0.0, 0);
                let (told, count) = lose(&mut marks, 100_000, share, lost);
                let most = count + count / 20;
                assert!((count..=most).contains(&told), "{lost} {share}: {told}, not {count}");
            }
        }
    }

    /// The sender learns of marks that set in all at once: in the first round trip of a hundred packets only
    /// the certain ones, from the second on also those for which the counter has probably wrapped.
    #[test]
    fn marks_that_set_in_are_told_though_acknowledgements_are_lost() {
        for lost in [0, 20, 40] {
            let mut marks = Marks::default();
            lose(&mut marks, 10_000, 0.0, lost);
            let (told, count) = lose(&mut marks, 100, 1.0, lost);
            assert!(told * 10 >= count * 7, "{lost}: {told} of {count}");
            let (told, count) = lose(&mut marks, 100, 1.0, lost);
            assert_eq!(told, count, "{lost}");
        }
    }

    /// Half of the acknowledgements lost, or more, are told apart from a filter: where everything is marked,
    /// now and then an acknowledgement of few packets says so.
    #[test]
    fn marks_are_told_though_most_acknowledgements_are_lost() {
        for (lost, least) in [(40, 99), (50, 98), (60, 97), (70, 95)] {
            let (told, count) = lose(&mut Marks::default(), 100_000, 1.0, lost);
            assert!(told * 100 >= count * least, "{lost}: {told} of {count}");
            assert!(told * 100 <= count * 104, "{lost}: {told} of {count}");
        }
    }

    /// Nine packets with two marks more are the first example of the appendix, ten the second.
    #[test]
    fn a_counter_that_may_have_come_round_has() {
        for (more, newly, told) in [
            (2, 9, 2),
            (2, 10, 10),
            (0, 7, 0),
            (0, 8, 8),
            (7, 7, 7),
            (1, 40, 33),
            (3, 1, 3),
            (3, 0, 0),
        ] {
            let mut marks = Marks::default();
            assert_eq!(marks.told((5 + more) % 8, newly), told, "{more} more, {newly} packets");
        }
        let mut marks = Marks::default();
        let all: Vec<u32> = [6, 0, 0, 2].map(|ace| marks.told(ace, 4)).into();
        assert_eq!(all, [1, 2, 0, 2], "it wraps");
    }
}
