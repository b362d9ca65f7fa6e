//! Run folders as a whole: merging shards, accepting a baseline, and salvaging an unfinished run. Nothing here sends a
//! request.

mod accept;
mod baseline_copy;
mod baseline_labels;
mod baseline_review;
mod changes;
mod draft;
mod merge;
mod salvage;
mod take_over;

pub use accept::{AcceptError, Acceptance, Baseline, Incompleteness, RepeatProblem, accept};
pub use baseline_labels::{CaseLabels, LabelsError};
pub use baseline_review::{CaseReview, ReviewError};
pub use changes::Changes;
pub(crate) use changes::{FAILED_RUN, changes};
pub(crate) use changes::{absolute, rebase_path, relative};
pub use draft::{draft_expectations, runs_of_baseline};
pub use merge::{MergeError, ShardMismatch};
pub use merge::{Merged, RunForm, merge};
pub(crate) use salvage::{SalvageError, salvage_assets};
pub(crate) use salvage::{counts_of, was_skipped};
pub use take_over::{Attempts, ClaimError, CompleteAttempt, complete_attempt, find_attempts};
pub(crate) use take_over::{claim, until_taken_over};
