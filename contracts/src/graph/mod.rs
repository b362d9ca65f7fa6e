//! The dependency graph of the latest versions of contracts, and its forms as text: Graphviz and Mermaid. The crate `report`
//! draws it.
//!
//! ```text
//! store ─▶ read ─▶ Graph ─▶ to_dot, to_mermaid
//! ```
//!
//! Reading has a limit, so that a store of millions of contracts gives an error and not a full memory.

mod dependency_graph;
mod dot;
mod error;
mod mermaid;
mod query;

pub use dependency_graph::{Edge, Graph, GraphContract, Node};
pub use error::GraphError;
pub use query::{GraphQuery, MAX_HTML_NODES, MAX_NODES};
