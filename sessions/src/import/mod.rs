//! Imports the sessions of other programs from their files.
//!
//! ```text
//! files ─▶ find: format, order ─▶ lines, masked ─▶ claude_code, codex, spans, atif ─▶ sessions
//! ```
//!
//! The files are those of other programs: of any size, cut off, or hostile. A line that is not understood becomes an opaque
//! record, and never hides a session. `docs/session-import.md` lists what is mapped and what is left out.

mod atif;
mod claude_code;
mod codex;
mod find;
mod imported;
mod lines;
mod patches;
mod report;
mod run;
mod source;
mod spans;

pub use find::SourceError;
pub use imported::{Histories, ImportedRecord, ImportedSession, MessageId};
pub use lines::{MAX_DOCUMENT_BYTES, MAX_LINE_BYTES, MAX_SESSION_BYTES};
pub use report::{FileProblem, ImportReport, SecretCount};
pub use run::{ImportError, ImportOptions, ImportProgress, Receiver, import};
pub use source::Format;

/// Returns the types of lines, spans or steps of a format that are left out on purpose, each with the reason.
pub fn left_out(format: Format) -> &'static [(&'static str, &'static str)] {
    match format {
        Format::ClaudeCode => &claude_code::LEFT_OUT,
        Format::Codex => &codex::LEFT_OUT,
        Format::Otlp => &spans::LEFT_OUT_OTLP,
        Format::Openinference => &spans::LEFT_OUT_OPENINFERENCE,
        Format::Atif => &atif::LEFT_OUT,
    }
}
