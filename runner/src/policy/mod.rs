//! Pure policies: which failures are retried and when, how fast an agent is asked, when it counts as down, and which cases a
//! shard has. Nothing here sends, waits, reads or writes.

pub(crate) mod circuit;
pub(crate) mod concurrency;
pub(crate) mod pace;
pub(crate) mod rate;
pub(crate) mod retry;
pub(crate) mod retry_budget;
pub(crate) mod shard;
pub(crate) mod shard_detection;
