//! The report of a conformance run as text, JSON and `JUnit` XML.

mod json;
mod junit;
mod summary;
mod text;
mod xml;

pub use json::json;
pub use junit::junit;
pub use summary::Report;
pub use text::text;
