//! One case without a stored run, for a first look at an agent: the answers are returned as they came.

use std::sync::{Mutex, PoisonError};

use counterproof_artifact::Case;
use counterproof_cases::CaseSpec;
use counterproof_redaction::{Applied, Redactor};
use counterproof_store::write::WriteError;
use counterproof_store::{RunWriter, read_file};

use super::execute::{RunError, prepare};
use crate::agent::RequestInput;
use crate::body_sink::{BodyBytes, Extent};
use crate::environment::Environment;
use crate::exchange::Exchange;
use crate::settings::Settings;

/// A case that was run once, with secrets masked.
#[derive(Debug)]
pub struct Trial {
    /// The requests with their responses, in order. A case whose tools the runner executes has several.
    pub exchanges: Vec<TrialExchange>,
    /// Whether the agent was reached.
    pub reached: bool,
    /// The artifact, as a run would have it.
    pub case: Case,
}

/// A request and its response, with secrets masked.
#[derive(Debug, Default)]
pub struct TrialExchange {
    /// The body of the request.
    pub request: String,
    /// The HTTP status. `None` for a program, or without a response.
    pub status: Option<u16>,
    /// The content type of the response.
    pub content_type: Option<String>,
    /// The body of the response. Empty without one, or if it was too large to be an answer.
    pub body: Vec<u8>,
    /// What a program printed on standard error, up to a limit.
    pub standard_error: String,
}

impl TrialExchange {
    pub(super) fn new(request: &[u8], exchange: &Exchange, redactor: &Redactor) -> Self {
        let mut applied = Applied::default();
        let response = exchange.response.as_ref();
        let body = match response.map(|response| &response.body.bytes) {
            Some(BodyBytes::Memory(bytes)) => redactor.bytes(bytes, &mut applied).into_owned(),
            _ => Vec::new(),
        };
        let content_type = response.and_then(|response| response.header("content-type"));
        let standard_error = exchange.program.as_ref().map(|program| match program.stderr_extent {
            Extent::Complete => redactor.bytes(&program.stderr, &mut applied),
            // The cut can split a secret.
            Extent::Truncated => redactor.truncated_bytes(&program.stderr, &mut applied),
        });
        Self {
            request: redactor.text(&String::from_utf8_lossy(request), &mut applied),
            status: response.and_then(|response| response.status).map(|status| status.as_u16()),
            content_type: content_type.map(|value| redactor.text(value, &mut applied)),
            body,
            standard_error: String::from_utf8_lossy(&standard_error.unwrap_or_default()).into_owned(),
        }
    }
}

/// Runs one case as a run does, but without retries. The run folder that it needs is created below `settings.out`. Returns `None`
/// if it was interrupted.
///
/// Blocks until the case is complete, and runs its own async runtime.
pub fn try_once(settings: &Settings, case: &CaseSpec, environment: Environment) -> Result<Option<Trial>, RunError> {
    let mut settings = settings.clone();
    settings.retry.retries = 0;
    settings.save_requests = false;
    // Results of tools are shown, and not linked.
    settings.limits.payload = usize::MAX;
    let (runtime, prepared) = prepare(&settings, std::slice::from_ref(case), &environment.interrupt)?;
    let folder = RunWriter::create(&settings.out, settings.side, &settings.run_id)?;
    // Events are only for reporters.
    let (mut runner, _) = prepared.case_runner(&settings, environment, folder, 1);
    runner.observed = Some(Mutex::default());
    let outcome = runtime.block_on(async {
        if runner.is_conversation(case) {
            return runner.converse(case.clone()).await;
        }
        let request_input = RequestInput::single(case, settings.side, &settings.run_id);
        let request = runner.recorder.adapter.request(request_input);
        let request = request.map_err(|error| runner.recorder.request_error(&case.id, error))?;
        runner.run(case.id.clone(), request).await
    })?;
    let Some(outcome) = outcome else { return Ok(None) };
    let path = runner.recorder.run.folder().join(format!("{}.json", case.id));
    let artifact = read_file::read_text(&path, u64::MAX).and_then(|text| Ok(serde_json::from_str(&text)?));
    let case = artifact.map_err(|source| WriteError { path, source })?;
    let exchanges = runner.observed.take().unwrap_or_default();
    let exchanges = exchanges.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Some(Trial { exchanges, reached: outcome.reached, case }))
}
