//! A single request whose answer is returned as it came, for a first look at an agent.

use std::sync::Arc;

use counterproof_artifact::{Case, FailureClass};
use counterproof_cases::CaseSpec;
use counterproof_redaction::Applied;
use counterproof_store::RunWriter;

use super::execute::{RunError, check_cases, recorder, redactor, runtime};
use crate::agent::{ProtocolAdapter, RequestInput};
use crate::attempt::{AttemptContext, Transport};
use crate::body_sink::{BodyBytes, BodyDestination};
use crate::environment::Environment;
use crate::http::Connection;
use crate::settings::{AttemptLimits, Settings};

/// The answer to a single request, with secrets masked.
#[derive(Debug)]
pub struct Trial {
    /// The body of the request.
    pub request: String,
    /// The HTTP status. `None` for a program, or without a response.
    pub status: Option<u16>,
    /// The content type of the response.
    pub content_type: Option<String>,
    /// The body of the response. Empty without one, or if it was too large to be an answer.
    pub body: Vec<u8>,
    /// Whether the agent was reached.
    pub reached: bool,
    /// The artifact of the answer, or why it is not one.
    pub answer: Result<Box<Case>, TrialFailure>,
}

/// Why a response is not an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialFailure {
    /// The contract's failure class.
    pub class: FailureClass,
    /// The stable name.
    pub name: &'static str,
    /// The message, with secrets masked.
    pub message: String,
}

/// Sends the request of one case once. The run folder that it needs is created below `settings.out`.
///
/// Blocks until the answer is complete, and runs its own async runtime.
pub fn try_once(settings: &Settings, case: &CaseSpec, environment: &Environment) -> Result<Trial, RunError> {
    let adapter: Arc<dyn ProtocolAdapter> = settings.protocol.adapter(&settings.agent).into();
    let transport = Transport::new(settings, &*adapter)?;
    let redactor = redactor(settings, &transport)?;
    check_cases(&*adapter, std::slice::from_ref(case))?;
    let request_input = RequestInput::single(case, settings.side, &settings.run_id);
    let request = adapter
        .request(request_input)
        .map_err(|error| RunError::Request { case_id: case.id.clone(), message: error.to_string() })?;
    let folder = RunWriter::create(&settings.out, settings.side, &settings.run_id)?;
    let recorder = recorder(settings, redactor, adapter, folder);
    let context = AttemptContext {
        transport: &transport,
        limits: AttemptLimits::from_settings(settings),
        destination: BodyDestination { run: &recorder.run, redactor: &recorder.redactor },
        clock: &*environment.clock,
    };
    let attempt = runtime()?.block_on(context.attempt(1, Connection::KeptOrFresh, &request))?;
    let mut applied = Applied::default();
    let response = attempt.exchange.response.as_ref();
    let body = match response.map(|response| &response.body.bytes) {
        Some(BodyBytes::Memory(bytes)) => recorder.redactor.bytes(bytes, &mut applied).into_owned(),
        _ => Vec::new(),
    };
    let header = response.and_then(|response| response.header("content-type"));
    let content_type = header.map(|header| recorder.redactor.text(header, &mut applied));
    let status = response.and_then(|response| response.status).map(|status| status.as_u16());
    let recorded = recorder.record(attempt, &case.id)?;
    let received = match recorded.result {
        Ok(received) => Ok(Box::new(recorder.finish_answer(received.case, &received.applied)?)),
        Err(failure) => Err(failure),
    };
    let answer = received.map_err(|failure| TrialFailure {
        class: failure.note.class,
        name: failure.note.name,
        message: failure.document.error_message.unwrap_or_default(),
    });
    let request = recorder.redactor.text(&String::from_utf8_lossy(&request), &mut applied);
    Ok(Trial { request, status, content_type, body, reached: recorded.reached, answer })
}
