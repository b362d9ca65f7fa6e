//! Run folders as a whole: merging shards, accepting a baseline, and salvaging an unfinished run. Nothing here sends a
//! request.

mod baseline_labels;
mod baseline_copy;
mod accept;
mod changes;
mod draft;
mod merge;
mod salvage;

pub use accept::{AcceptError, Acceptance, Baseline, CaseLabels, Incompleteness, LabelsError, RepeatProblem, accept};
pub(crate) use salvage::{counts_of, was_skipped};
pub use changes::Changes;
pub(crate) use changes::changes;
pub use draft::{CaseDraft, DraftExpect, DraftExpected, draft_expectations, runs_of_baseline};
pub use merge::{Merged, merge};
pub use merge::{MergeError, ShardMismatch};
pub(crate) use changes::{absolute, rebase_path, relative};
pub(crate) use salvage::{SalvageError, salvage_assets};
