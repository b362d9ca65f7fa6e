//! The fields of an event that the ledger reads. Other fields are only stored.

#![expect(clippy::struct_field_names, reason = "the names of the fields of events")]

use serde::Deserialize;
use serde_json::{Number, Value};

/// The fields that identify an event. The types of the others do not matter.
#[derive(Debug, Deserialize)]
pub(super) struct IdentityFields {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) ts: String,
    pub(super) run_id: String,
    #[serde(default)]
    pub(super) seq: Value,
    #[serde(default)]
    pub(super) source: Value,
}

/// All fields of an event that the ledger reads, whatever its type.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Fields {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) ts: String,
    pub(super) run_id: String,
    pub(super) seq: Option<u64>,
    pub(super) agent_id: Option<String>,
    pub(super) client: Option<String>,
    pub(super) env: Option<String>,
    pub(super) source: Option<Source>,
    pub(super) principal: Option<String>,
    pub(super) workload: Option<Value>,
    pub(super) run: Option<Run>,
    pub(super) call: Option<Call>,
    pub(super) decision: Option<Decision>,
    pub(super) status: Option<String>,
    pub(super) latency_ms: Option<Number>,
    pub(super) bytes_out: Option<Number>,
    pub(super) preview: Option<Preview>,
    pub(super) error: Option<ErrorFields>,
    pub(super) hint: Option<Hint>,
    pub(super) policy: Option<Policy>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Source {
    pub(super) host_id: Option<String>,
    pub(super) proc_id: Option<String>,
    pub(super) shim_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Run {
    pub(super) started_at: Option<String>,
    pub(super) ended_at: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) policy: Option<Policy>,
    pub(super) meta: Option<Value>,
    pub(super) status: Option<String>,
    pub(super) summary: Option<Summary>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Summary {
    pub(super) calls_total: Option<u64>,
    pub(super) calls_allowed: Option<u64>,
    pub(super) calls_blocked: Option<u64>,
    pub(super) calls_throttled: Option<u64>,
    pub(super) errors_total: Option<u64>,
    pub(super) duration_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Call {
    pub(super) call_id: String,
    pub(super) server_name: Option<String>,
    pub(super) tool_name: Option<String>,
    pub(super) args_hash: Option<String>,
    pub(super) transport: Option<String>,
    pub(super) bytes_in: Option<Number>,
    pub(super) preview: Option<Preview>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Preview {
    pub(super) truncated: Option<bool>,
    pub(super) args_preview: Option<String>,
    pub(super) result_preview: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Decision {
    pub(super) action: Option<String>,
    pub(super) rule_id: Option<String>,
    pub(super) explain: Option<Explain>,
    pub(super) policy: Option<Policy>,
    pub(super) hint: Option<Hint>,
    pub(super) observed: Option<Observed>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Explain {
    pub(super) reason_code: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Observed {
    pub(super) action: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ErrorFields {
    pub(super) class: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Hint {
    pub(super) hint_text: Option<String>,
    pub(super) hint_kind: Option<String>,
    pub(super) suggested_args: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Policy {
    pub(super) policy_id: Option<String>,
    pub(super) policy_version: Option<String>,
    pub(super) policy_hash: Option<String>,
    /// The rules themselves, which producers may add.
    pub(super) rules: Option<Value>,
}
