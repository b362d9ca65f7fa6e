//! Compares two runs: a verdict on each case and the gate on all of them.

mod case;
mod compare;
pub mod evaluation_text;
mod notices;
mod other_runs;
mod request;
pub mod rerender;
mod shard_facts;

pub use case::CaseComparison;
pub(crate) use compare::compare_confirmed;
pub use compare::{CompareError, FlippedCase, compare, flipped_cases};
pub use notices::different_settings;
pub use other_runs::{OtherRun, other_runs};
pub use request::Request;
pub use shard_facts::{ShardFacts, ShardFactsError, WriteShardFactsError, write_shard_facts};
