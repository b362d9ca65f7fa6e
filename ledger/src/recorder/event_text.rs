//! The text of an event. The envelope is serialised once for all events of a source.

use jiff::Timestamp;
use serde::Serialize;

use super::EventOrigin;
use crate::event::{AgentClient, EVENT_VERSION, EventBody, EventSource, WorkingEnvironment, Workload};

/// The constant parts of the text of an event.
#[derive(Debug)]
pub(super) struct EventText {
    run_id: String,
    /// The other fields of the envelope, without braces.
    rest: String,
}

#[derive(Serialize)]
struct Rest<'a> {
    agent_id: &'a str,
    client: AgentClient,
    env: WorkingEnvironment,
    source: &'a EventSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<&'a Workload>,
}

impl EventText {
    pub(super) fn new(origin: &EventOrigin) -> Result<Self, serde_json::Error> {
        let rest = serde_json::to_string(&Rest {
            agent_id: &origin.agent_id,
            client: origin.client,
            env: origin.env,
            source: &origin.source,
            principal: origin.principal.as_deref(),
            workload: origin.workload.as_ref(),
        })?;
        let run_id = serde_json::to_string(&origin.run_id)?;
        Ok(Self { run_id, rest: rest[1..rest.len() - 1].to_owned() })
    }

    /// Returns the line of an event, with its newline. The body is an object with the field `type`.
    pub(super) fn line(&self, seq: u64, ts: Timestamp, body: &str) -> String {
        let Self { run_id, rest } = self;
        let body = &body[1..];
        format!("{{\"v\":\"{EVENT_VERSION}\",\"ts\":\"{ts}\",\"run_id\":{run_id},\"seq\":{seq},{rest},{body}\n")
    }
}

/// Serialises the fields that the type of an event adds.
pub(super) fn body_text(body: &EventBody) -> Result<String, serde_json::Error> {
    serde_json::to_string(body)
}

/// Removes the previews of an event.
pub(super) fn drop_previews(body: &mut EventBody) -> bool {
    match body {
        EventBody::ToolCallStart { call } if call.preview.args_preview.is_some() => {
            call.preview.args_preview = None;
            call.preview.truncated = true;
            true
        }
        EventBody::ToolCallEnd(end) if end.preview.result_preview.is_some() => {
            end.preview.result_preview = None;
            end.preview.truncated = true;
            true
        }
        _ => false,
    }
}
