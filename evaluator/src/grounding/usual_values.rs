//! The usual values of each tool argument in the baseline, over all cases. An argument that takes only a few values is the
//! agent's own vocabulary (a currency, a mode, a class of travel) and needs no origin. At an argument to which the baseline itself
//! often passes values without an origin, a missing origin is not evidence.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::origins::{each_holder, root};
use super::search::each_leaf;
use crate::load::LoadedAnswer;
use crate::values::meaning::{HashedMap, HashedSet};
use crate::values::meaning_hash;

/// An argument with more values than this has no usual values.
const MOST_VALUES: usize = 8;

/// An argument needs this many cases per distinct value.
const CASES_PER_VALUE: usize = 3;

/// At most one in this many cases of the baseline passes a value without an origin, or such a value of new is not evidence.
const CASES_PER_UNSOURCED: usize = 10;

/// Most arguments recorded per case. Tools have fewer; an answer with more uses keys as data.
const ARGUMENTS_PER_CASE: usize = 256;

/// The values of the baseline by argument. Threads can share it; the result does not depend on the order of the cases.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct UsualValues {
    known: Mutex<HashedMap<KnownValues>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct KnownValues {
    /// The number of cases that pass the argument.
    cases: usize,
    /// The number of cases that pass a value without an origin.
    unsourced: usize,
    /// The hashes of distinct values, at most `MOST_VALUES + 1`.
    values: Vec<u64>,
}

/// The cases of the baseline that are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    Partial,
    Complete,
}

/// Whether a value is usual for an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Classification {
    Usual,
    /// Values without an origin are usual for the argument: the agent converts a known value, such as a city to an airport code.
    UsuallyUnsourced,
    /// It is not usual, whatever the remaining cases contain.
    Unusual,
    Undecided,
}

impl UsualValues {
    /// Records the tool arguments of an answer of the baseline. `unsourced` are those with a value without an origin.
    pub(crate) fn note(&self, baseline: &LoadedAnswer, unsourced: &HashedSet) {
        // Per case first: an argument counts once per case, however many calls pass it.
        let mut here: HashedMap<Vec<u64>> = HashedMap::default();
        each_holder(baseline, |_, tool, arguments| {
            each_leaf(arguments, root(tool), &mut |argument, value| {
                if here.len() < ARGUMENTS_PER_CASE || here.contains_key(&argument) {
                    add(here.entry(argument).or_default(), meaning_hash(value));
                }
            });
        });
        // The answer is read before the lock is taken, so that threads wait only for the merge.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (argument, values) in here {
            let unsourced = usize::from(unsourced.contains(&argument));
            known.entry(argument).or_default().add(KnownValues { cases: 1, unsourced, values });
        }
    }

    /// Adds what another shard of the comparison noted.
    pub(crate) fn merge(&self, other: Self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (argument, more) in other.known.into_inner().unwrap_or_else(PoisonError::into_inner) {
            known.entry(argument).or_default().add(more);
        }
    }

    /// Classifies a value of an argument. `coverage` states which cases [`Self::note`] has recorded.
    pub(crate) fn classify(&self, argument: u64, value: &Value, coverage: Coverage) -> Classification {
        let undecided = coverage == Coverage::Partial;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = known.get(&argument) else {
            return if undecided { Classification::Undecided } else { Classification::Unusual };
        };
        // Each further case can add a value or a case without an origin, or raise the number of cases per value.
        if undecided {
            return Classification::Undecided;
        }
        if known.unsourced * CASES_PER_UNSOURCED > known.cases {
            return Classification::UsuallyUnsourced;
        }
        if known.values.len() > MOST_VALUES {
            return Classification::Unusual;
        }
        // Relative to the cases: three values in three cases are data, three values in a hundred cases are a vocabulary.
        let few = known.cases >= CASES_PER_VALUE * known.values.len();
        if few && known.values.contains(&meaning_hash(value)) { Classification::Usual } else { Classification::Unusual }
    }
}

impl KnownValues {
    /// Adds further cases.
    fn add(&mut self, more: Self) {
        self.cases += more.cases;
        self.unsourced += more.unsourced;
        for value in more.values {
            add(&mut self.values, value);
        }
    }
}

/// Adds a distinct value.
fn add(values: &mut Vec<u64>, value: u64) {
    // One more than `MOST_VALUES` is enough to know that there are too many.
    if values.len() <= MOST_VALUES && !values.contains(&value) {
        values.push(value);
    }
}
