//! A contract as a document: its types, its JSON Schema, and its validation.

mod id;
mod types;

pub use id::{ContractId, ContractKey, IdError, KeyError};
pub use types::{
    Contract, ContractInput, ContractMetadata, ContractOutput, Resource, ResourceType, RetryConfig, Rollback,
    RollbackStrategy, Verification,
};

/// The JSON Schema of a contract.
pub const CONTRACT_SCHEMA_SOURCE: &str = include_str!("../../../schemas/contract.v1.schema.json");
