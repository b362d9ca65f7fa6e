//! Why a cassette has no answer to a request.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;

use crate::mcp::TOOLS_CALL;

/// Longest name of a tool in a message, in characters.
const MAX_NAME_CHARS: usize = 100;

/// A request without an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Miss {
    pub(super) method: String,
    /// The tool that is called.
    pub(super) tool: Option<String>,
    /// True if all recorded answers to equal requests were given.
    pub(super) is_used_up: bool,
    /// True if the cassette has requests of this tool, or of this method if it is no tool call.
    pub(super) has_similar: bool,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// Returns the tool that a request calls.
pub(super) fn tool_name(method: &str, params: Option<&str>) -> Option<String> {
    let params = params.filter(|_| method == TOOLS_CALL)?;
    serde_json::from_str::<CallParams<'_>>(params).ok().map(|params| params.name.into_owned())
}

impl Miss {
    /// Names the request.
    pub(super) fn request(&self) -> String {
        let short = |name: &str| name.chars().take(MAX_NAME_CHARS).collect::<String>();
        match &self.tool {
            Some(tool) => format!("call of the tool `{}`", short(tool)),
            None => format!("`{}` request", short(&self.method)),
        }
    }

    /// States what the cassette has instead.
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
