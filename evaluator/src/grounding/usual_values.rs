//! The usual values of each tool argument in the baseline, over all cases. An argument that takes only a few values is the
//! agent's own vocabulary (a currency, a mode, a class of travel) and needs no origin.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::origins::{each_holder, each_leaf, root};
use crate::load::LoadedAnswer;
use crate::values::hashed::HashedMap;
use crate::values::meaning_hash;

/// An argument with more values than this has no usual values.
const FEW: usize = 8;

/// An argument needs this many cases per distinct value.
const CASES_A_VALUE: usize = 3;

/// Most arguments recorded per case. Tools have fewer; an answer with more uses keys as data.
const PLACES_A_CASE: usize = 256;

/// The values of the baseline by argument. Threads can share it; the result does not depend on the order of the cases.
#[derive(Debug, Default)]
pub(crate) struct UsualValues {
    known: Mutex<HashedMap<Place>>,
}

#[derive(Debug, Default)]
struct Place {
    cases: usize,
    /// The hashes of distinct values, at most `FEW + 1`.
    values: Vec<u64>,
}

/// Whether a value is usual for an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Usual {
    /// It is usual.
    Yes,
    /// It is not usual, whatever the remaining cases contain.
    No,
    /// The remaining cases decide.
    Unknown,
}

impl UsualValues {
    /// Records the tool arguments of an answer of the baseline.
    pub(crate) fn note(&self, baseline: &LoadedAnswer) {
        let mut here: HashedMap<Vec<u64>> = HashedMap::default();
        each_holder(baseline, |_, tool, arguments| {
            each_leaf(arguments, root(tool), &mut |place, value| {
                if here.len() < PLACES_A_CASE || here.contains_key(&place) {
                    add(here.entry(place).or_default(), meaning_hash(value));
                }
            });
        });
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, values) in here {
            let place = known.entry(place).or_default();
            place.cases += 1;
            for value in values {
                add(&mut place.values, value);
            }
        }
    }

    /// Returns whether a value is usual for an argument. Pass `all_noted` once every case was recorded.
    pub(crate) fn usual(&self, place: u64, value: &Value, all_noted: bool) -> Usual {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = known.get(&place) else { return if all_noted { Usual::No } else { Usual::Unknown } };
        if place.values.len() > FEW {
            return Usual::No;
        }
        if !all_noted {
            return Usual::Unknown;
        }
        let few = place.cases >= CASES_A_VALUE * place.values.len();
        if few && place.values.contains(&meaning_hash(value)) { Usual::Yes } else { Usual::No }
    }
}

fn add(values: &mut Vec<u64>, value: u64) {
    if values.len() <= FEW && !values.contains(&value) {
        values.push(value);
    }
}
