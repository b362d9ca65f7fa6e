//! An event: the envelope and what its type adds.

use serde::{Deserialize, Serialize};

use super::{
    BreakerTrip, CallEnd, CallId, CallRef, CallStart, DecisionRecord, Envelope, Hint, PolicyRef, RunEnd, RunStart,
    SecretInjection,
};

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The fields that every event has.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The fields of its type.
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
    /// The server received a secret, or did not.
    SecretInjection {
        /// The secret, without its value.
        secret_injection: SecretInjection,
    },
    /// The agent received a hint.
    HintIssued {
        call: HintedCall,
        hint: Hint,
    },
    PolicyLoaded {
        policy: PolicyRef,
    },
    /// A breaker refused a call.
    BreakerTrip {
        call: CallRef,
        breaker: BreakerTrip,
    },
    /// A problem of the shim itself, such as a ledger that cannot be written.
    ShimHealth {
        /// The problem.
        health: ShimHealth,
    },
}

impl EventBody {
    /// The field `type`.
    pub const fn name(&self) -> &'static str {
        match self {
            EventBody::RunStart { .. } => "run_start",
            EventBody::ToolCallStart { .. } => "tool_call_start",
            EventBody::ToolCallDecision { .. } => "tool_call_decision",
            EventBody::ToolCallEnd(_) => "tool_call_end",
            EventBody::RunEnd { .. } => "run_end",
            EventBody::SecretInjection { .. } => "secret_injection",
            EventBody::HintIssued { .. } => "hint_issued",
            EventBody::PolicyLoaded { .. } => "policy_loaded",
            EventBody::BreakerTrip { .. } => "breaker_trip",
            EventBody::ShimHealth { .. } => "shim_health",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HintedCall {
    pub call_id: CallId,
}

/// A problem of the shim itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimHealth {
    /// A stable code, such as `tools_changed`.
    pub code: String,
    /// One line.
    pub message: String,
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
