//! A session of an agent that exists: what the proxy, the working tree and `safe-run` see goes to one recorder.

mod observer;
mod session_recording;

pub use session_recording::{AgentOutcome, SessionRecording, Warn};
