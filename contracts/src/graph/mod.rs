//! The dependency graph of the latest versions of contracts, and its forms: Graphviz, Mermaid, and a page.
//!
//! ```text
//! store ─▶ read ─▶ Graph ─▶ to_dot, to_mermaid
//!                    └────▶ layout (layers, boxes, curves) ─▶ page
//! ```
//!
//! Reading has a limit, so that a store of millions of contracts gives an error and not a full memory.

mod dependency_graph;
mod dot;
mod drawing;
mod error;
mod layout;
mod mermaid;
mod page;
mod query;

pub use dependency_graph::{Edge, Graph, Node};
pub use error::GraphError;
pub use page::GraphPageError;
pub use query::{GraphQuery, MAX_HTML_NODES, MAX_NODES};
