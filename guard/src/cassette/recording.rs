//! Records the answers of a server.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_redaction::{Applied, Redactor};
use counterproof_store::line_log::{LineLog, LineWriter, LockOptions, LogError};
use counterproof_store::write::{WriteError, create_private_file};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Answer, Entry, Header, RequestKey, SCHEMA_VERSION, request_key};
use crate::mcp::{RequestId, Response};

/// Largest message that is recorded, in bytes: a line of a file of lines can have no more.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// A cassette that is being recorded.
#[derive(Debug)]
pub struct Recording {
    path: Utf8PathBuf,
    redactor: Redactor,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    writer: LineWriter,
    requests: HashMap<RequestId, Request>,
    tools: Option<String>,
}

#[derive(Debug)]
struct Request {
    key: RequestKey,
    params: Option<String>,
}

/// A cassette that cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file has lines already.
    #[error("the cassette `{0}` exists")]
    Exists(Utf8PathBuf),
    /// The file cannot be written.
    #[error("failed to record the cassette `{path}`")]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// The reason.
        source: LogError,
    },
    /// A line has no JSON form.
    #[error("failed to serialise an answer")]
    Serialise(#[from] serde_json::Error),
}

impl Recording {
    /// Starts a cassette in a new file, which only this process writes and only its owner can read.
    pub fn start(path: &Utf8Path, server_name: &str, redactor: Redactor) -> Result<Self, RecordingError> {
        let write_error = |source| RecordingError::Write { path: path.to_owned(), source };
        let options = LockOptions { wait: Duration::ZERO };
        create_private_file(path)
            .map_err(|WriteError { path, source, .. }| write_error(LogError::Write { path, source }))?;
        let mut writer = LineLog::new(path).lock(&options, |_| true).map_err(write_error)?;
        if writer.length() > 0 {
            return Err(RecordingError::Exists(path.to_owned()));
        }
        let header = Header {
            schema_version: SCHEMA_VERSION.to_owned(),
            server_name: server_name.to_owned(),
            recorded_at: Timestamp::now(),
        };
        writer.append(&line(&header)?).map_err(write_error)?;
        Ok(Self {
            path: path.to_owned(),
            redactor,
            state: Mutex::new(State { writer, requests: HashMap::new(), tools: None }),
        })
    }

    /// Remembers a request that the server will answer.
    pub fn request(&self, id: &RequestId, method: &str, params: Option<&str>) {
        let key = request_key(method, params);
        let params = params.map(|params| self.redactor.text(params, &mut Applied::default()));
        self.state().requests.insert(id.clone(), Request { key, params });
    }

    /// Forgets a request whose answer cannot be recorded. Returns false if it is not known.
    pub fn forget(&self, id: &RequestId) -> bool {
        self.state().requests.remove(id).is_some()
    }

    /// Records answers of the server. Returns true if the list of tools has changed during the recording.
    pub fn answers(&self, responses: &[Response<'_>]) -> Result<bool, RecordingError> {
        responses.iter().try_fold(false, |changed, response| Ok(changed | self.answer(response)?))
    }

    fn answer(&self, response: &Response<'_>) -> Result<bool, RecordingError> {
        let mut state = self.state();
        let Some(request) = state.requests.remove(&response.id) else { return Ok(false) };
        let answer = self.redactor.text(response.payload, &mut Applied::default());
        let raw: &RawValue = serde_json::from_str(&answer)?;
        let params = request.params.as_deref().map(serde_json::from_str).transpose()?;
        let entry = Entry {
            method: request.key.method,
            params_hash: request.key.params_hash,
            params,
            answer: if response.is_error { Answer::Error(raw) } else { Answer::Result(raw) },
        };
        let path = self.path.clone();
        state.writer.append(&line(&entry)?).map_err(|source| RecordingError::Write { path, source })?;
        if entry.method != "tools/list" || response.is_error {
            return Ok(false);
        }
        let before = state.tools.replace(answer.clone());
        Ok(before.is_some_and(|before| before != answer))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
