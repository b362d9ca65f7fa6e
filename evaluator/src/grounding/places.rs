//! What the baseline usually gives a tool at a place, over all cases: one value, or one of a few. Such a value is the
//! agent's own vocabulary (a currency, a mode, a class of travel) and needs no source.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::origins::{each_holder, each_leaf, root};
use crate::load::LoadedAnswer;
use crate::values::hashed::HashedMap;
use crate::values::meaning_hash;

/// A place with more values than this holds anything.
const FEW: usize = 8;

/// Each of the few values has to stand for so many cases, on average.
const CASES_A_VALUE: usize = 3;

/// Places noted of one case: tools have fewer, and what has more uses names as data.
const PLACES_A_CASE: usize = 256;

/// The values of the baseline by place. It can be shared between threads, and what it says in the end does not depend on
/// the order in which the cases were noted.
#[derive(Debug, Default)]
pub(crate) struct UsualValues {
    known: Mutex<HashedMap<Place>>,
}

#[derive(Debug, Default)]
struct Place {
    cases: usize,
    /// Equal for equal values; more than `FEW` are not kept.
    values: Vec<u64>,
}

/// Whether a value is one of a place's few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Usual {
    /// It is.
    Yes,
    /// It is not, whatever other cases hold.
    No,
    /// As far as the cases go that were noted, it might be.
    Unknown,
}

impl UsualValues {
    /// Notes what the baseline's answer gives its tools.
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

    /// Whether a value is usual at a place. `all_noted` says that no case is still to come.
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
