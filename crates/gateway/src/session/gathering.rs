//! Answers with counts of classes: many are asked a few at a time, between packets.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;

use crate::control::Told;
use crate::link::Link;
use crate::trouble::Trouble;

/// Classes that are asked at a time: some microseconds.
const AT_ONCE: usize = 128;

/// Answers that wait for counts, the oldest first.
#[derive(Default)]
pub(super) struct Gathering(VecDeque<(Sender<Result<Told, Trouble>>, Told)>);

impl Gathering {
    /// Answers once all counts are there.
    pub(super) fn answer(&mut self, to: Sender<Result<Told, Trouble>>, told: Told) {
        self.0.push_back((to, told));
    }

    /// Asks the next classes of the `links`. Whether there are more.
    pub(super) fn go_on(&mut self, links: &[Link; 2]) -> bool {
        let Some((_, told)) = self.0.front_mut() else { return false };
        let mut room = AT_ONCE;
        for (link, counts) in links.iter().zip(&mut told.classes) {
            room -= counts.as_mut().map_or(0, |counts| link.count_classes(counts, room));
        }
        if room > 0
            && let Some((to, told)) = self.0.pop_front()
        {
            // The caller may be gone.
            _ = to.send(Ok(told));
        }
        !self.0.is_empty()
    }
}
