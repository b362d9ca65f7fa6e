//! Origins of the values that an agent passes to its tools: the case's input, or an earlier event of the same side. A value
//! without an origin was made up. `judge::findings` decides whether that matters.
//!
//! Text that the agent wrote itself is not an origin: arguments of calls, queries, its messages, and outputs. Words of a failed result that repeat
//! the arguments of its own call are not an origin either. Everything else is, including unknown event types. The searched words are
//! collected first, and each text is then read once, so the cost is linear in the size of the transcript.

pub(crate) mod arguments;
mod computed;
mod nearest;
mod origins;
mod provenance;
pub(crate) mod records;
mod search;
mod usual_values;

pub use arguments::{TracedArgument, ValueSource};

pub(crate) use crate::diff::differences::Holder;
pub(crate) use nearest::{Gap, Nearest};
pub(crate) use origins::{
    Leaf, Origins, carried_out, distance_of_numbers, distance_of_values, is_same_transcript, leaf_pointer, name_of,
    named_by_user, numbers_only_in, origins_of_values,
};
pub(crate) use provenance::Provenance;
pub(crate) use provenance::Transcript;
pub(crate) use provenance::{Suspect, identifies, is_unchanged_transcript, suspects};
pub(crate) use search::Origin;
pub(crate) use usual_values::{Classification, Coverage, UsualValues};
