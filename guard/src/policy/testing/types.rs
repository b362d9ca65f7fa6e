//! A test file as types. The schema describes the same fields.

use counterproof_artifact::Nullable;
use counterproof_ledger::event::{Action, AgentClient, WorkingEnvironment, Workload};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::identity::RunIdentity;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestDocument {
    pub(super) name: String,
    #[serde(default)]
    pub(super) run: RunDocument,
    pub(super) calls: Vec<CallDocument>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RunDocument {
    agent_id: Option<String>,
    client: AgentClient,
    env: WorkingEnvironment,
    principal: Option<String>,
    workload: Option<Workload>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallDocument {
    pub(super) server: String,
    pub(super) tool: String,
    #[serde(default)]
    pub(super) args: Map<String, Value>,
    #[serde(default)]
    pub(super) large_args: bool,
    pub(super) bytes_in: Option<u64>,
    pub(super) at_ms: Option<u64>,
    pub(super) repeat: Option<u64>,
    #[serde(default)]
    pub(super) outcome: OutcomeDocument,
    pub(super) expect: Option<ExpectDocument>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OutcomeDocument {
    #[default]
    Ok,
    Error,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ExpectDocument {
    pub(super) action: Option<Action>,
    /// Null expects the default.
    pub(super) rule_id: Nullable<String>,
    pub(super) reason_code: Option<String>,
    pub(super) tags: Option<Vec<String>>,
}

impl RunDocument {
    pub(super) fn identity(self) -> RunIdentity {
        RunIdentity {
            run_id: "test".to_owned(),
            agent_id: self.agent_id.unwrap_or_else(|| "unknown".to_owned()),
            client: self.client,
            env: self.env,
            principal: self.principal,
            workload: self.workload,
        }
    }
}
