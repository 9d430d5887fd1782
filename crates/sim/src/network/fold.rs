//! Which links need no events of their own.

use super::path::END;

/// How a link is folded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fold {
    /// Not at all.
    Not,
    /// A plain link that is always entered directly after one and the same link: when a packet
    /// leaves it is known as soon as that one sends.
    After,
    /// A link that is entered only after these plain ones, which lead nowhere else and whose
    /// packets' arrivals are known before they happen: it takes them in the order of their arrival
    /// (at equal times in the order of the links' numbers, as events come) when anybody looks.
    Merges(Vec<u32>),
}

/// How a link is used by the paths.
#[derive(Clone, Default)]
struct Usage {
    /// Whether a path begins here.
    first: bool,
    before: Vec<u32>,
    after: Vec<u32>,
}

/// How each of `links` links is folded under a table of paths. A link that `impairs` merges nothing; a wire
/// that does counts as managed.
pub(crate) fn folds(
    paths: &[u32],
    managed: impl Fn(usize) -> bool,
    impairs: impl Fn(usize) -> bool,
    links: usize,
) -> Vec<Fold> {
    let usages = usages(paths, links);
    let after = |link: usize| {
        let usage = &usages[link];
        !managed(link) && !usage.first && usage.before.len() == 1
    };
    // A packet's arrival at the far end of a link is known before it happens if the link is plain
    // and gets its packets at their time: from end points, or after such a link.
    let known = |mut link: usize| {
        while after(link) {
            link = usages[link].before[0] as usize;
        }
        !managed(link) && usages[link].first
    };
    let feeds_only = |feeder: usize, link: usize| usages[feeder].after == [link as u32];
    (0..links)
        .map(|link| {
            let Usage { first, before, .. } = &usages[link];
            let feeds = |&l: &u32| known(l as usize) && feeds_only(l as usize, link);
            if after(link) {
                Fold::After
            } else if !impairs(link) && !first && !before.is_empty() && before.iter().all(feeds) {
                Fold::Merges(before.clone())
            } else {
                Fold::Not
            }
        })
        .collect()
}

fn usages(paths: &[u32], links: usize) -> Vec<Usage> {
    let mut usages = vec![Usage::default(); links];
    let mut before = END;
    for &link in paths {
        if link != END && link as usize >= links {
            continue; // a stage between links
        }
        if before != END {
            usages[before as usize].after.push(link);
        }
        if link != END {
            let usage = &mut usages[link as usize];
            if before == END {
                usage.first = true;
            } else {
                usage.before.push(before);
            }
        }
        before = link;
    }
    for usage in &mut usages {
        for list in [&mut usage.before, &mut usage.after] {
            list.sort_unstable();
            list.dedup();
        }
    }
    usages
}

#[cfg(test)]
mod tests {
    use super::*;

    const E: u32 = END;

    #[test]
    fn a_dumbbell_folds_to_an_event_an_end() {
        // 0: bottleneck (managed), 1: back; 2 and 4 lead to it, 3 and 5 from 1; 6 and 7 at the right.
        let paths = [2, 0, 6, E, 7, 1, 3, E, 4, 0, 6, E, 7, 1, 5, E];
        let folds = folds(&paths, |l| l == 0, |_| false, 8);
        assert_eq!(folds[0], Fold::Merges(vec![2, 4]));
        assert_eq!(folds[1], Fold::After, "one source of acknowledgements");
        assert_eq!(
            folds[2..],
            [Fold::Not, Fold::After, Fold::Not, Fold::After, Fold::After, Fold::Not]
        );
    }

    #[test]
    fn what_comes_from_a_queue_or_a_shared_link_is_not_merged() {
        // Two managed links in a row with cross traffic at the second.
        let folds_of = |paths: &[u32]| folds(paths, |l| l < 2, |_| false, 6);
        assert_eq!(folds_of(&[2, 0, 1, 4, E, 3, 1, 4, E])[1], Fold::Not);
        // Link 3 also leads elsewhere.
        assert_eq!(folds_of(&[2, 0, E, 3, 0, E, 3, 4, E])[0], Fold::Not);
        // A path begins at the queue itself.
        assert_eq!(folds_of(&[2, 0, E, 0, E])[0], Fold::Not);
        // After a queue, then after a link that is after a queue.
        assert_eq!(folds_of(&[2, 0, 4, 5, E])[4..], [Fold::After, Fold::After]);
    }
}
