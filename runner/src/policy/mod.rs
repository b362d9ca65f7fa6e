//! Pure policies: which failures are retried and when, how many cases run at the same time, when the agent looks down, and
//! which cases belong to a shard. Nothing here sends, waits, reads or writes.

mod circuit;
mod concurrency;
mod pace;
mod retry;
mod shard;
mod spending;

pub(crate) use circuit::CircuitBreaker;
pub(crate) use concurrency::Signal;
pub use concurrency::{Concurrency, ConcurrencyError};
pub(crate) use pace::Pace;
pub use pace::{Rate, RateError};
pub use retry::RetryPolicy;
pub(crate) use retry::RetryTokens;
pub(crate) use retry::{Decision, FailedAttempt, retry_after};
pub use retry::{RetryBudget, RetryBudgetError, RetryOn, RetryOnError};
pub use shard::RunShard;
pub use shard::{InvalidValue, ShardDetectionError, detect_shard};
pub use spending::{Spending, UsageLimits};
