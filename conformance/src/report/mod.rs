//! The report of a conformance run as text, as JSON and as `JUnit` XML.

mod json;
mod junit;
mod summary;
mod text;

pub use json::json;
pub use junit::{JunitError, junit};
pub use summary::Report;
pub use text::text;
