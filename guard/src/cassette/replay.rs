//! Answers requests from a cassette, and explains why it has no answer.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{Answer, Entry, Header, MAX_CASSETTE_BYTES, RequestKey, SCHEMA_VERSION, request_key};
use crate::mcp::{RequestId, TOOLS_CALL};

const NOT_RECORDED: i64 = -32603;

/// What happens to a request that is not in the cassette.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnMiss {
    /// It is answered with an error. The server is not started.
    #[default]
    Error,
    Forward,
}

#[derive(Debug)]
pub struct Replay {
    path: Utf8PathBuf,
    server_names: BTreeSet<String>,
    on_miss: OnMiss,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    answers: HashMap<RequestKey, VecDeque<RecordedAnswer>>,
    called: HashSet<String>,
    /// The tools at the start of the last recording that lists them.
    tools: Option<RecordedAnswer>,
    has_listed_tools: bool,
    asked_for_tools: Vec<RequestId>,
    misses: u64,
    first_miss: Option<Miss>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RecordedAnswer {
    member: &'static str,
    text: String,
}

#[derive(Debug, PartialEq, Eq)]
pub enum CassetteLookup {
    Answer(String),
    /// The request is not in the cassette. The response is an error, as JSON text.
    Missing(String),
    Forward,
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("failed to read the cassette `{path}`")]
    Read { path: Utf8PathBuf, source: io::Error },
    #[error("invalid cassette: {path}:{line}: {problem}")]
    Line { path: Utf8PathBuf, line: usize, problem: String },
}

impl Replay {
    pub fn read(path: &Utf8Path, on_miss: OnMiss) -> Result<Self, ReplayError> {
        let read_error = |source| ReplayError::Read { path: path.to_owned(), source };
        let bytes = read_file::read_argument(path, MAX_CASSETTE_BYTES).map_err(read_error)?;
        let (mut state, mut server_names) = (State::default(), BTreeSet::new());
        for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let invalid = |problem: String| ReplayError::Line { path: path.to_owned(), line: index + 1, problem };
            // Without this error, the answer in a cut line would only be missed at a later request, which does not show
            // the reason.
            if !line.ends_with(b"\n") {
                return Err(invalid("the line is cut off: the recording was interrupted".to_owned()));
            }
            let not_an_entry = match serde_json::from_slice::<Entry<'_>>(line) {
                Ok(entry) if index > 0 => {
                    state.add(entry);
                    continue;
                }
                entry => entry.err(),
            };
            let header = serde_json::from_slice::<Header>(line);
            let header =
                header.map_err(|error| invalid(not_an_entry.filter(|_| index > 0).unwrap_or(error).to_string()))?;
            if header.schema_version != SCHEMA_VERSION {
                return Err(invalid(format!(
                    "`schema_version` is `{}`; this version reads `{SCHEMA_VERSION}`",
                    header.schema_version
                )));
            }
            server_names.insert(header.server_name);
            state.start_recording();
        }
        if bytes.is_empty() {
            let problem = "the file is empty".to_owned();
            return Err(ReplayError::Line { path: path.to_owned(), line: 1, problem });
        }
        Ok(Self { path: path.to_owned(), server_names, on_miss, state: Mutex::new(state) })
    }

    pub fn other_server(&self, server_name: &str) -> Option<&str> {
        self.server_names.iter().map(String::as_str).find(|name| *name != server_name)
    }

    /// Describes the requests that were answered with an error because the cassette has no answer, if there were any.
    pub fn misses(&self) -> Option<String> {
        let state = self.state();
        let first = state.first_miss.as_ref()?;
        let (path, count, request, reason) = (&self.path, state.misses, first.request(), first.reason());
        let requests = if count == 1 { "request" } else { "requests" };
        Some(format!(
            "the cassette `{path}` has no answer to {count} {requests}; the first is a {request}: {reason}; record it \
             again, or pass `--on-miss forward` and the command of the server"
        ))
    }

    pub fn needs_server(&self) -> bool {
        self.on_miss == OnMiss::Forward
    }

    /// Answers a request. Requests other than tool calls are forwarded if there is a server, which needs its handshake.
    pub fn request(&self, id: &RequestId, method: &str, params: Option<&str>) -> CassetteLookup {
        let mut state = self.state();
        // The server must see its handshake, and lists the tools that it has now.
        if self.needs_server() && method != TOOLS_CALL {
            if method == "tools/list" {
                state.asked_for_tools.push(id.clone());
            }
            return CassetteLookup::Forward;
        }
        let key = request_key(method, params);
        if let Some(recorded) = state.take(&key) {
            return CassetteLookup::Answer(response(id, recorded.member, &recorded.text));
        }
        if self.needs_server() {
            return CassetteLookup::Forward;
        }
        // A client may ping at any time; a cassette need not have as many answers.
        if method == "ping" {
            return CassetteLookup::Answer(response(id, "result", "{}"));
        }
        let miss = state.miss(&key, params);
        let message = miss.to_string();
        state.misses += 1;
        state.first_miss.get_or_insert(miss);
        CassetteLookup::Missing(response(id, "error", &json!({"code": NOT_RECORDED, "message": message}).to_string()))
    }

    /// Checks a response of the server to a forwarded request. Returns true if it lists other tools than the cassette.
    pub fn has_other_tools(&self, id: &RequestId, result: &str) -> bool {
        let mut state = self.state();
        let Some(at) = state.asked_for_tools.iter().position(|asked| asked == id) else { return false };
        state.asked_for_tools.swap_remove(at);
        let tools = |text: &str| serde_json::from_str::<serde_json::Value>(text).map(|it| it["tools"].clone()).ok();
        state.tools.as_ref().is_some_and(|recorded| tools(&recorded.text) != tools(result))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn start_recording(&mut self) {
        self.has_listed_tools = false;
    }

    fn add(&mut self, entry: Entry<'_>) {
        let (member, text): (_, &RawValue) = match entry.answer {
            Answer::Result(text) => ("result", text),
            Answer::Error(text) => ("error", text),
        };
        let recorded = RecordedAnswer { member, text: text.get().to_owned() };
        if entry.method == "tools/list" && !std::mem::replace(&mut self.has_listed_tools, true) {
            self.tools = Some(recorded.clone());
        }
        self.called.extend(tool_name(&entry.method, entry.params.map(RawValue::get)));
        let key = RequestKey { method: entry.method, params_hash: entry.params_hash };
        self.answers.entry(key).or_default().push_back(recorded);
    }

    fn miss(&self, key: &RequestKey, params: Option<&str>) -> Miss {
        let tool = tool_name(&key.method, params);
        let has_similar = match &tool {
            Some(tool) => self.called.contains(tool),
            None => self.answers.keys().any(|recorded| recorded.method == key.method),
        };
        Miss { method: key.method.clone(), tool, is_used_up: self.answers.contains_key(key), has_similar }
    }

    /// Takes the next answer to a request. Each answer to a tool call is used once. Other answers can be used again.
    fn take(&mut self, key: &RequestKey) -> Option<RecordedAnswer> {
        let answers = self.answers.get_mut(key)?;
        // A tool may answer the same call differently each time. Lists can be asked for any number of times.
        if key.method == TOOLS_CALL || answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
    }
}

fn response(id: &RequestId, member: &str, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"{member}":{text}}}"#, id.as_json())
}

const MAX_NAME_CHARS: usize = 100;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Miss {
    pub(super) method: String,
    pub(super) tool: Option<String>,
    /// True if all recorded answers to equal requests were given.
    pub(super) is_used_up: bool,
    /// True if the cassette has requests of this tool, or of this method if it is not a tool call.
    pub(super) has_similar: bool,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

pub(super) fn tool_name(method: &str, params: Option<&str>) -> Option<String> {
    let params = params.filter(|_| method == TOOLS_CALL)?;
    serde_json::from_str::<CallParams<'_>>(params).ok().map(|params| params.name.into_owned())
}

impl Miss {
    pub(super) fn request(&self) -> String {
        let short = |name: &str| name.chars().take(MAX_NAME_CHARS).collect::<String>();
        match &self.tool {
            Some(tool) => format!("call of the tool `{}`", short(tool)),
            None => format!("`{}` request", short(&self.method)),
        }
    }

    pub(super) fn reason(&self) -> String {
        let (requests, params) = match self.tool {
            Some(_) => ("calls of this tool", "arguments"),
            None => ("requests of this method", "parameters"),
        };
        match (self.is_used_up, self.has_similar) {
            (true, _) => format!("all answers to {requests} with these {params} are used up"),
            (false, true) => format!("it has {requests} only with other {params}"),
            (false, false) => format!("it has no {requests}"),
        }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the cassette has no answer to this {}: {}", self.request(), self.reason())
    }
}
