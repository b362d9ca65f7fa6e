//! Tests of sessions as a whole.

mod import_claude_code;
mod import_codex;
mod import_docs;
mod import_hostile;
mod import_kit;
mod import_traces;
mod real_files;
