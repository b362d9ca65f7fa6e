//! The value of an answer at each place, as one hash per place. The hashes of all runs of all cases fit in memory.

use std::collections::HashMap;

use super::answer_places::AnswerPlaces;
use super::place::{ActionAspect, Place};

/// The label of a place that a run does not have.
pub(super) const ABSENT: u64 = 0;

/// The hash of an answer at each of its places, sorted by place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Labels {
    by_place: Vec<(u64, u64)>,
}

impl Labels {
    /// Labels an answer, and adds the names of its places to `names`.
    pub(super) fn from_answer(answer: AnswerPlaces<'_>, names: &mut Names) -> Self {
        let mut by_place: HashMap<u64, u64> = HashMap::new();
        answer.visit_all(&mut |place: Place<'_>, value| {
            let key = place.key();
            names.0.entry(key).or_insert_with(|| Named {
                name: place.to_string(),
                owner: place.owner(),
                action_aspect: place.action_aspect(),
            });
            add(by_place.entry(key).or_default(), value);
        });
        let mut by_place: Vec<_> = by_place.into_iter().collect();
        by_place.sort_unstable();
        by_place.shrink_to_fit();
        Self { by_place }
    }

    /// The label of the answer at a place; [`ABSENT`] if the answer does not have the place.
    pub(super) fn at(&self, place: u64) -> u64 {
        let found = self.by_place.binary_search_by_key(&place, |(place, _)| *place);
        found.map_or(ABSENT, |index| self.by_place[index].1)
    }

    /// The places that the answer has.
    pub(super) fn places(&self) -> impl Iterator<Item = u64> {
        self.by_place.iter().map(|(place, _)| *place)
    }
}

/// The names and kinds of places, by key.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<u64, Named>);

#[derive(Debug)]
struct Named {
    name: String,
    owner: Option<u64>,
    action_aspect: Option<ActionAspect>,
}

impl Names {
    /// Combines the names of both.
    pub(super) fn merged(mut self, others: Names) -> Self {
        for (place, name) in others.0 {
            self.0.entry(place).or_insert(name);
        }
        self
    }

    /// The name of a place that was labelled.
    pub(super) fn get(&self, place: u64) -> Option<&str> {
        self.0.get(&place).map(|named| named.name.as_str())
    }

    /// The calls or the actions that a place is a part of.
    pub(super) fn owner(&self, place: u64) -> Option<u64> {
        self.0.get(&place)?.owner
    }

    /// The aspect of proposed actions that a place describes.
    pub(super) fn action_aspect(&self, place: u64) -> Option<ActionAspect> {
        self.0.get(&place)?.action_aspect
    }
}

/// Adds the hash of an element to the label of its place. The sum depends on the number of elements but not on their order.
pub(super) fn add(label: &mut u64, value: u64) {
    // An odd multiplier spreads the bits. The lowest bit is set so that no element adds 0 and all elements count.
    let mixed = (value ^ (value >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    *label = label.wrapping_add(mixed);
}
