//! What the runner takes from the system, passed in by the caller: time, randomness, the checkout and the stop handle.

mod checkout;
mod clock;
mod environment;
mod interrupt;
mod jitter;

pub use checkout::Checkout;
pub(crate) use clock::whole_millis;
pub use clock::{Clock, Moment, SteppingClock, SystemClock};
pub use environment::Environment;
pub use interrupt::{Interrupt, Urgency};
pub use jitter::Jitter;
