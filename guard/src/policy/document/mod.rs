//! Policy files: from the text to a [`Policy`](super::Policy), or to findings with line and column.

mod parse;
mod rule;
mod types;

pub(in crate::policy) use parse::{CompiledPolicy, check_document, embedded_schema, format};
pub use parse::{InvalidPolicy, LoadPolicyError, MAX_POLICY_BYTES, POLICY_SCHEMA_SOURCE, PolicyFile};
pub(in crate::policy) use rule::default_reason_code;
