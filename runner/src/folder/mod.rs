//! Run folders as a whole: merging shards, accepting a baseline, and what an unfinished run left behind. Nothing here sends a
//! request.

pub(crate) mod accept;
pub(crate) mod changes;
pub(crate) mod merge;
pub(crate) mod relative_path;
pub(crate) mod salvage;
