//! Pure policies: which failures are retried and when, how many cases run at the same time, when the agent looks down, and
//! which cases belong to a shard. Nothing here sends, waits, reads or writes.

mod circuit;
mod concurrency;
mod pace;
mod rate;
mod retry;
mod retry_budget;
mod shard;
mod shard_detection;

pub(crate) use circuit::CircuitBreaker;
pub(crate) use concurrency::Signal;
pub use concurrency::{Concurrency, ConcurrencyError};
pub(crate) use pace::Pace;
pub use rate::{Rate, RateError};
pub use retry::RetryPolicy;
pub(crate) use retry::{Decision, FailedAttempt, retry_after};
pub(crate) use retry_budget::RetryTokens;
pub use retry_budget::{RetryBudget, RetryBudgetError};
pub use shard::{RunShard, Shard, ShardError};
pub use shard_detection::{InvalidValue, ShardDetectionError, detect_shard};
