//! What is wrong with a ledger, and what to do about it.

mod check;
mod events;
mod examine;
mod permissions;
mod waiting;

pub use check::Check;
pub use examine::examine;
pub use permissions::is_open_to_others;
