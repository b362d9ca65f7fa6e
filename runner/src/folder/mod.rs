//! Run folders as a whole: merging shards, accepting a baseline, and salvaging an unfinished run. Nothing here sends a
//! request.

mod accept;
mod case_counts;
mod changes;
mod draft;
mod merge;
mod merge_error;
mod relative_path;
mod salvage;

pub use accept::{AcceptError, Acceptance, Baseline, CaseLabels, Incompleteness, LabelsError, RepeatProblem, accept};
pub(crate) use case_counts::{counts_of, was_skipped};
pub use changes::Changes;
pub(crate) use changes::changes;
pub use draft::{CaseDraft, DraftExpect, DraftExpected, draft_expectations, runs_of_baseline};
pub use merge::{Merged, merge};
pub use merge_error::{MergeError, ShardMismatch};
pub(crate) use relative_path::{absolute, rebase_path, relative};
pub(crate) use salvage::{SalvageError, salvage_assets};
