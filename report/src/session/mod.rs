//! One page of a session of a coding agent: how it ended, its errors and milestones, its files, and every record in its order.
//! The page is a single file without scripts that opens from disk.

mod blocks;
mod checkpoints;
mod overview;
mod page;
mod record;
mod token_chart;

pub use page::{SessionPageError, SessionSource, session_page, write_session_page};
