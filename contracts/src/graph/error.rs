//! Errors of the graph.

use crate::contract::ContractId;
use crate::store::{StoreError, path_of_ids};

#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    #[error("the graph has {found} contracts; at most {limit} are possible here")]
    TooLarge {
        /// The number of contracts, or the first number over the limit.
        found: u64,
        limit: usize,
    },
    /// Contracts that depend on each other. Only a file that was changed by hand has them.
    #[error("circular dependency: {}", path_of_ids(.0))]
    Circular(Vec<ContractId>),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl GraphError {
    pub const fn code(&self) -> &'static str {
        match self {
            GraphError::TooLarge { .. } => "graph_too_large",
            GraphError::Circular(_) => "circular_dependency",
            GraphError::Store(error) => error.code(),
        }
    }

    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            GraphError::TooLarge { .. } => Some("name contracts to get the part around them"),
            GraphError::Circular(_) => {
                Some("the file of the store was changed by another program; restore it from a backup")
            }
            GraphError::Store(error) => error.hint(),
        }
    }
}
