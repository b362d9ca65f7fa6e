//! An event: the envelope that all events have, and what its type adds.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    BreakerTrip, CallEnd, CallId, CallRef, CallStart, DecisionRecord, Hint, LoadedPolicy, RunEnd, RunStart,
    SecretInjection,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    #[serde(flatten)]
    pub envelope: Envelope,
    #[serde(flatten)]
    pub body: EventBody,
}

/// The fields that the type of an event adds. The field `type` names the variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "an event exists until it is written; boxes would only cost allocations")]
pub enum EventBody {
    RunStart {
        run: RunStart,
    },
    ToolCallStart {
        call: CallStart,
    },
    ToolCallDecision {
        call: CallRef,
        decision: DecisionRecord,
    },
    ToolCallEnd(CallEnd),
    /// The run has ended. No event of its source follows.
    RunEnd {
        run: RunEnd,
    },
    /// The secret, without its value.
    SecretInjection {
        secret_injection: SecretInjection,
    },
    HintIssued {
        call: HintedCall,
        hint: Hint,
    },
    PolicyLoaded {
        policy: LoadedPolicy,
    },
    BreakerTrip {
        call: CallRef,
        breaker: BreakerTrip,
    },
    /// A problem of the shim itself, such as a ledger that cannot be written.
    ShimHealth {
        health: ShimHealth,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HintedCall {
    pub call_id: CallId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimHealth {
    /// A stable code, such as `tools_changed`.
    pub code: String,
    pub message: String,
}

/// The fields that every event has, except `type`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    pub v: String,
    pub ts: Timestamp,
    /// The run. All programs that `guard run` starts share it.
    pub run_id: String,
    /// The number of the event within its source, from 1. Run, shim and number identify an event. Events of other producers may
    /// lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The agent; `unknown` if it is not named.
    pub agent_id: String,
    pub client: AgentClient,
    pub env: WorkingEnvironment,
    pub source: EventSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventSource {
    pub host_id: String,
    pub proc_id: String,
    pub shim_id: String,
}

named_enum! {
    /// The kind of program that an agent runs in.
    #[derive(Default)]
    pub enum AgentClient {
        Claude = "claude",
        Codex = "codex",
        /// A program without a user interface.
        Headless = "headless",
        Custom = "custom",
        /// Not stated, or a value that this version does not know.
        #[default]
        #[serde(other)]
        Unknown = "unknown",
    }
}

named_enum! {
    #[derive(Default)]
    pub enum WorkingEnvironment {
        Dev = "dev",
        Ci = "ci",
        Prod = "prod",
        /// Not stated, or a value that this version does not know.
        #[default]
        #[serde(other)]
        Unknown = "unknown",
    }
}

/// The job that an agent runs in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workload {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci_provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::Sha256Digest;
    use serde_json::{Value, json};

    use super::super::*;
    use super::*;

    fn envelope() -> Envelope {
        Envelope {
            v: EVENT_VERSION.to_owned(),
            ts: "2026-01-31T12:00:00.123456Z".parse().unwrap(),
            run_id: "r1".to_owned(),
            seq: Some(2),
            agent_id: "unknown".to_owned(),
            client: AgentClient::Unknown,
            env: WorkingEnvironment::Ci,
            source: EventSource { host_id: "h".to_owned(), proc_id: "7".to_owned(), shim_id: "s".to_owned() },
            principal: None,
            workload: None,
        }
    }

    fn call() -> CallRef {
        CallRef {
            call_id: CallId::new_random(),
            server_name: "git".to_owned(),
            tool_name: "push".to_owned(),
            args_hash: Sha256Digest::from_bytes(b"{}"),
        }
    }

    #[test]
    fn an_event_is_one_line_with_the_envelope_and_the_fields_of_its_type() {
        let end = CallEnd {
            call: call(),
            status: CallStatus::Ok,
            latency_ms: 201,
            bytes_out: 40,
            preview: ResultPreview::default(),
            error: None,
            result_stream_hash: None,
        };
        let event = Event { envelope: envelope(), body: EventBody::ToolCallEnd(end) };
        let line = serde_json::to_string(&event).unwrap();
        assert!(!line.contains('\n'));
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["type"], "tool_call_end");
        assert_eq!(value["source"], json!({"host_id": "h", "proc_id": "7", "shim_id": "s"}));
        assert_eq!((&value["status"], &value["latency_ms"]), (&json!("OK"), &json!(201)));
        assert_eq!(value["ts"], "2026-01-31T12:00:00.123456Z");
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }

    #[test]
    fn the_source_of_a_secret_does_not_replace_the_source_of_the_event() {
        let secret_injection = SecretInjection {
            inject_as: "TOKEN".to_owned(),
            secret_ref: "github".to_owned(),
            source: SecretSource::File,
            success: true,
        };
        let event = Event { envelope: envelope(), body: EventBody::SecretInjection { secret_injection } };
        let value = serde_json::to_value(&event).unwrap();
        assert_eq!(value["source"]["shim_id"], "s");
        assert_eq!(value["secret_injection"]["source"], "file");
        assert_eq!(serde_json::from_value::<Event>(value).unwrap(), event);
    }

    #[test]
    fn unknown_values_and_fields_are_read() {
        let mut value = serde_json::to_value(Event {
            envelope: envelope(),
            body: EventBody::HintIssued {
                call: HintedCall { call_id: CallId::new_random() },
                hint: Hint {
                    hint_text: "later".to_owned(),
                    suggested_args: None,
                    retry_advice: None,
                    hint_kind: HintKind::Rate,
                },
            },
        })
        .unwrap();
        assert_eq!(value["hint"]["suggested_args"], Value::Null);
        value["client"] = json!("new-client");
        value["hint"]["hint_kind"] = json!("NEW");
        value["future"] = json!(1);
        let event: Event = serde_json::from_value(value).unwrap();
        assert_eq!(event.envelope.client, AgentClient::Unknown);
    }
}
