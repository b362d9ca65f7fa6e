//! Records the answers of a server: the lines of a cassette, and the key by which a replay finds an answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Sha256Digest;
use counterproof_artifact::canonical::canonical_hash;
use counterproof_redaction::{Applied, JsonUse, Redactor, redact_json};
use counterproof_store::line_log::{LineLog, LineWriter, LockOptions, LogError};
use counterproof_store::write::{WriteError, create_private_file};
use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::MAX_CASSETTE_BYTES;
use crate::mcp::{RequestId, Response, TOOLS_CALL};

/// Largest message that is recorded, in bytes: a line of a file of lines can have no more.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

const MAX_WAITING: usize = 1000;
const MAX_WAITING_BYTES: usize = 64 << 20;

/// How long to wait for another recording in the same file: a client that restarts a server may not wait for its end. A shim whose
/// server ignores the end of its input needs 10 seconds to kill it.
const LOCK_WITHIN: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Recording {
    path: Utf8PathBuf,
    redactor: Redactor,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    writer: LineWriter,
    requests: WaitingRequests,
    tools: Option<String>,
}

#[derive(Debug, Default)]
struct WaitingRequests {
    requests: HashMap<RequestId, Request>,
    bytes: usize,
    count: u64,
}

#[derive(Debug)]
struct Request {
    number: u64,
    key: RequestKey,
    params: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("`{0}` exists and is not a cassette")]
    NotCassette(Utf8PathBuf),
    #[error("the cassette `{path}` is of the server `{server_name}`")]
    OtherServer { path: Utf8PathBuf, server_name: String },
    #[error("failed to record the cassette `{path}`")]
    Write { path: Utf8PathBuf, source: LogError },
    #[error("the cassette `{0}` has reached {MAX_CASSETTE_BYTES} bytes: an answer is not recorded")]
    Full(Utf8PathBuf),
    #[error("too many requests wait for an answer: the answer to the oldest (`{method}`) will not be recorded")]
    TooManyRequests { method: String },
    #[error("failed to serialise the answer to a request (`{method}`)")]
    Serialise { method: String, source: serde_json::Error },
}

impl Recording {
    /// Starts a recording in a new file, or continues a cassette of the same server.
    pub fn start(path: &Utf8Path, server_name: &str, redactor: Redactor) -> Result<Self, RecordingError> {
        // Only this process writes the file, and only its owner can read it.
        let write_error = |source| RecordingError::Write { path: path.to_owned(), source };
        create_private_file(path)
            .map_err(|WriteError { path, source, .. }| write_error(LogError::Write { path, source }))?;
        // A file of lines with a lock: two shims of one server must not mix their recordings.
        let log = LineLog::new(path);
        // First, because the lock repairs the last line, and other files must stay as they are.
        check_header(&log, server_name)?;
        let options = LockOptions { wait: LOCK_WITHIN };
        let is_whole = |line: &[u8]| serde_json::from_slice::<IgnoredAny>(line).is_ok();
        let writer = log.lock(&options, is_whole).map_err(write_error)?;
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        writer
            .file()
            .set_permissions(private)
            .map_err(|source| write_error(LogError::Write { path: path.to_owned(), source }))?;
        let header = Header {
            schema_version: SCHEMA_VERSION.to_owned(),
            server_name: server_name.to_owned(),
            recorded_at: Timestamp::now(),
        };
        let state = State { writer, requests: WaitingRequests::default(), tools: None };
        let recording = Self { path: path.to_owned(), redactor, state: Mutex::new(state) };
        recording.append(&mut recording.state().writer, "header", &header)?;
        Ok(recording)
    }

    /// Remembers a request that the server will answer. Fails if another one had to be forgotten for it.
    pub fn request(&self, id: &RequestId, method: &str, params: Option<&str>) -> Result<(), RecordingError> {
        // Of the unredacted parameters, because a replay compares real requests with it.
        let key = request_key(method, params);
        let params = params.map(|params| self.redacted(params));
        match self.state().requests.insert(id, key, params) {
            Some(forgotten) => Err(RecordingError::TooManyRequests { method: forgotten.key.method }),
            None => Ok(()),
        }
    }

    /// Forgets a request whose answer cannot be recorded. Returns false if it is not known.
    pub fn forget(&self, id: &RequestId) -> bool {
        self.state().requests.remove(id).is_some()
    }

    /// Records answers of the server. Returns true if the list of tools has changed during the recording. After an error, the other
    /// answers are recorded, and the first error is returned.
    pub fn answers(&self, responses: &[Response<'_>]) -> Result<bool, RecordingError> {
        let results: Vec<_> = responses.iter().map(|response| self.answer(response)).collect();
        results.into_iter().try_fold(false, |changed, result| Ok(changed | result?))
    }

    fn answer(&self, response: &Response<'_>) -> Result<bool, RecordingError> {
        let mut state = self.state();
        let Some(Request { key, params, .. }) = state.requests.remove(&response.id) else { return Ok(false) };
        let method = key.method.clone();
        let serialise_error = |source| RecordingError::Serialise { method: method.clone(), source };
        let answer = self.redacted(response.payload);
        let raw: &RawValue = serde_json::from_str(&answer).map_err(serialise_error)?;
        let params = params.as_deref().map(serde_json::from_str).transpose().map_err(serialise_error)?;
        let entry = Entry {
            method: key.method,
            params_hash: key.params_hash,
            params,
            answer: if response.is_error { Answer::Error(raw) } else { Answer::Result(raw) },
        };
        self.append(&mut state.writer, &method, &entry)?;
        if entry.method != "tools/list" || response.is_error {
            return Ok(false);
        }
        // Calls that were recorded before may not fit to the tools that the server lists now.
        let before = state.tools.replace(answer.clone());
        Ok(before.is_some_and(|before| before != answer))
    }

    fn append(&self, writer: &mut LineWriter, method: &str, value: &impl Serialize) -> Result<(), RecordingError> {
        let serialise_error = |source| RecordingError::Serialise { method: method.to_owned(), source };
        let mut line = serde_json::to_vec(value).map_err(serialise_error)?;
        line.push(b'\n');
        // A longer file could be recorded and never replayed.
        if writer.length() + line.len() as u64 > MAX_CASSETTE_BYTES {
            return Err(RecordingError::Full(self.path.clone()));
        }
        let write_error = |source| RecordingError::Write { path: self.path.clone(), source };
        writer.append(&line).map(drop).map_err(write_error)
    }

    fn redacted(&self, json: &str) -> String {
        let redacted = redact_json(&self.redactor, json.as_bytes(), JsonUse::Storage, &mut Applied::default());
        String::from_utf8_lossy(&redacted).into_owned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingRequests {
    /// Adds a request. Returns the oldest one if it had to be removed.
    fn insert(&mut self, id: &RequestId, key: RequestKey, params: Option<String>) -> Option<Request> {
        // An id that is used again names the new request.
        self.remove(id);
        self.bytes += params.as_ref().map_or(0, String::len);
        self.count += 1;
        self.requests.insert(id.clone(), Request { number: self.count, key, params });
        if self.requests.len() <= MAX_WAITING && self.bytes <= MAX_WAITING_BYTES {
            return None;
        }
        let oldest = self.requests.iter().min_by_key(|(_, request)| request.number).map(|(id, _)| id.clone())?;
        self.remove(&oldest)
    }

    fn remove(&mut self, id: &RequestId) -> Option<Request> {
        let request = self.requests.remove(id)?;
        self.bytes -= request.params.as_ref().map_or(0, String::len);
        Some(request)
    }
}

fn check_header(log: &LineLog, server_name: &str) -> Result<(), RecordingError> {
    let path = || log.path().to_owned();
    let read_error = |source| RecordingError::Write { path: path(), source };
    let Some(mut reader) = log.read_from(0).map_err(read_error)? else { return Ok(()) };
    let first = match reader.next_line() {
        Ok(Some(line)) => line.bytes,
        Ok(None) if reader.torn_bytes() == 0 => return Ok(()),
        Ok(None) | Err(LogError::TooLong { .. }) => return Err(RecordingError::NotCassette(path())),
        Err(error) => return Err(read_error(error)),
    };
    let header = serde_json::from_slice::<Header>(&first).ok();
    let header = header.filter(|header| header.schema_version == SCHEMA_VERSION);
    match header {
        None => Err(RecordingError::NotCassette(path())),
        Some(header) if header.server_name != server_name => {
            Err(RecordingError::OtherServer { path: path(), server_name: header.server_name })
        }
        Some(_) => Ok(()),
    }
}

pub const SCHEMA_VERSION: &str = "cassette.v1";

/// The first line of a recording. A cassette can have several recordings of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub schema_version: String,
    pub server_name: String,
    pub recorded_at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Entry<'a> {
    pub method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params_hash: Option<Sha256Digest>,
    /// The parameters, redacted. They are for people: requests are compared by the hash.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub answer: Answer<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer<'a> {
    #[serde(borrow)]
    Result(&'a RawValue),
    #[serde(borrow)]
    Error(&'a RawValue),
}

/// Methods whose parameters describe the client. They do not change the answer.
const BY_METHOD_ALONE: [&str; 2] = ["initialize", "server/discover"];

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestKey {
    pub method: String,
    /// The hash of the canonical parameters without `_meta`; none for methods whose parameters do not matter.
    pub params_hash: Option<Sha256Digest>,
}

/// Returns the key of a request. Missing arguments of a tool call are an empty object.
pub fn request_key(method: &str, params: Option<&str>) -> RequestKey {
    if BY_METHOD_ALONE.contains(&method) {
        return RequestKey { method: method.to_owned(), params_hash: None };
    }
    let mut params: Value = params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
    if params.is_null() {
        params = Value::Object(Map::new());
    }
    if let Some(fields) = params.as_object_mut() {
        // `_meta` has tokens for progress and traces, which differ in each run.
        fields.shift_remove("_meta");
        if method == TOOLS_CALL && fields.get("arguments").is_none_or(Value::is_null) {
            fields.insert("arguments".to_owned(), Value::Object(Map::new()));
        }
    }
    RequestKey { method: method.to_owned(), params_hash: Some(canonical_hash(&params)) }
}
