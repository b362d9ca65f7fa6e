//! What an agent sent in one exchange, over any transport. The recorder judges its content.

use counterproof_safe_run::Ending;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use crate::body_sink::{BodyBytes, Extent, SinkLimits};
use crate::failure::{Fault, Reason};

/// The outcome of sending one request to the agent.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    /// The response as far as it arrived. For a program, its standard output.
    pub(crate) response: Option<AgentResponse>,
    /// How the program ended, if the agent is a program.
    pub(crate) program: Option<ProgramEnd>,
    /// The fault that transport and status reveal. The content of the body is judged later.
    pub(crate) fault: Option<Fault>,
    /// Whether nothing was sent for lack of file descriptors. The exchange is then repeated and not recorded.
    pub(crate) lacks_files: bool,
}

impl Exchange {
    /// Returns an exchange that did not take place for lack of file descriptors.
    pub(crate) fn without_files() -> Self {
        Self { lacks_files: true, ..Self::default() }
    }

    pub(crate) fn failed(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }
}

#[derive(Debug)]
pub(crate) struct AgentResponse {
    /// The HTTP status. `None` for a program.
    pub(crate) status: Option<StatusCode>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: ReceivedBody,
}

impl AgentResponse {
    /// Returns a header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A body as far as it was received.
#[derive(Debug, Default)]
pub(crate) struct ReceivedBody {
    /// The bytes, decoded if possible.
    pub(crate) bytes: BodyBytes,
    /// The size of the complete body, if known.
    pub(crate) total: Option<u64>,
    /// Why the body is truncated or unusable.
    pub(crate) fault: Option<Fault>,
    pub(crate) extent: Extent,
    /// A remark for readers of the saved body.
    pub(crate) note: Option<&'static str>,
}

impl ReceivedBody {
    /// Returns the fault of a body that did not fit into memory.
    pub(crate) fn answer_size_fault(&self, limits: SinkLimits) -> Option<Fault> {
        // An answer is parsed in memory, so a body on disk cannot be one.
        let message = || format!("the body is larger than the limit of {} bytes for answers", limits.memory);
        matches!(self.bytes, BodyBytes::Disk { .. }).then(|| Fault::new(Reason::BodyTooLarge, message()))
    }
}

/// How a program ended.
#[derive(Debug, Default)]
pub(crate) struct ProgramEnd {
    /// The standard error output, up to a limit.
    pub(crate) stderr: Vec<u8>,
    pub(crate) stderr_extent: Extent,
    /// `None` if the program never started, or was killed by the runner.
    pub(crate) ending: Option<Ending>,
    /// Whether it ended although it should have answered further requests.
    pub(crate) died: bool,
}
