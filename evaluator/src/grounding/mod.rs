//! Origins of the values that an agent passes to its tools: the case's input, or an earlier event of its own side. A value
//! without an origin was made up. Whether that matters is for the findings.
//!
//! What the agent wrote itself is no origin: not the arguments of calls, not queries, not outputs; nor is a failed result
//! that only repeats what its own call was given. Everything else is, unknown event types included. The words to search
//! are collected first and each text is then read once, so the cost is that of reading.

mod arithmetic;
mod origins;
mod provenance;
mod search;
mod suspects;
mod tokens;
mod usual_values;

pub(crate) use crate::diff::counterparts::Holder;
pub(crate) use origins::{
    Leaf, Origin, Origins, distance_of_numbers, distance_of_values, is_same_transcript, leaf_pointer, numbers_only_in,
    origins_of_values,
};
pub(crate) use provenance::Provenance;
pub(crate) use suspects::{Suspect, Transcript, suspects};
pub(crate) use usual_values::{Classification, Coverage, UsualValues};
