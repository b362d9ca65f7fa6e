//! The value of an answer at each place, as one hash per place: small enough to hold for every run of every case in memory.

use std::collections::HashMap;

use super::places::{OfActions, Place, Visited};

/// The label of a place that a run does not have.
pub(super) const NOTHING: u64 = 0;

/// The hash of an answer at each of its places, sorted by place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Labels {
    by_place: Vec<(u64, u64)>,
}

impl Labels {
    /// Labels an answer, and adds the names of its places to `names`.
    pub(super) fn from_answer(answer: Visited<'_>, names: &mut Names) -> Self {
        let mut by_place: HashMap<u64, u64> = HashMap::new();
        answer.all(&mut |place: Place<'_>, value| {
            let key = place.key();
            names.0.entry(key).or_insert_with(|| Named {
                name: place.to_string(),
                owner: place.owner(),
                of_actions: place.of_actions(),
            });
            add(by_place.entry(key).or_default(), value);
        });
        let mut by_place: Vec<_> = by_place.into_iter().collect();
        by_place.sort_unstable();
        by_place.shrink_to_fit();
        Self { by_place }
    }

    /// What the answer has at a place.
    pub(super) fn at(&self, place: u64) -> u64 {
        let found = self.by_place.binary_search_by_key(&place, |(place, _)| *place);
        found.map_or(NOTHING, |index| self.by_place[index].1)
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
    of_actions: Option<OfActions>,
}

impl Names {
    /// Adds the names of `others`.
    pub(super) fn and(mut self, others: Names) -> Self {
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

    /// What a place says of proposed actions.
    pub(super) fn of_actions(&self, place: u64) -> Option<OfActions> {
        self.0.get(&place)?.of_actions
    }
}

/// Adds the hash of an element to those at the same place. The sum ignores their order but not their number.
pub(super) fn add(label: &mut u64, value: u64) {
    let mixed = (value ^ (value >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    *label = label.wrapping_add(mixed);
}
