//! Signals: contents of new that a person should see whatever the verdict is. Secrets, personal data, untrusted URLs, data that
//! is sent to an unknown recipient, and instructions in tool results that the agent follows.
//!
//! Each detector compares new with the baseline: what the baseline does as well is no news. Patterns find known shapes only; a
//! secret or an instruction in another form is not found. All work is linear in the size of the texts.

mod case;
mod contact_signals;
mod injection;
mod secrets;
mod shapes;
mod signal;
mod texts;

pub(crate) use case::{SignalInput, find, may_have_signals};
pub(crate) use contact_signals::BaselineContacts;
pub use signal::{Domain, SignalSettings};
pub(crate) use signal::{RunNumber, Signal, SignalKind, SignalSet};
