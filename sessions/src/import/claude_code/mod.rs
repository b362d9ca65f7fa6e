//! Transcripts of Claude Code: a file of lines for each session, and files for its subagents.
//!
//! ```text
//! files ─▶ transcript: lines, each of a kind ─▶ records, in the order of the tree ─▶ sessions
//! ```

mod content;
mod kinds;
mod records;
mod tools;
mod transcript;
mod tree;

use jiff::Timestamp;

pub(super) use kinds::LEFT_OUT;
pub(super) use transcript::SeenLines;

use super::lines::{Masker, read_lines};
use super::source::{ReadResult, Transcript, read_files};
use transcript::{FileReader, Lines};

/// Reads the sessions of a transcript.
pub(super) fn read(transcript: &Transcript, seen: &mut SeenLines, masker: &mut Masker<'_>) -> ReadResult {
    let mut result = ReadResult::default();
    let mut lines = Lines::default();
    let files = transcript.main.iter().chain(&transcript.agents);
    let folder = transcript.main.as_ref().or(transcript.agents.first()).map(|file| file.with_extension(""));
    read_files(files, &mut result, masker, |path, masker, budget, tally| {
        let is_agent = transcript.main.as_deref() != Some(path);
        let mut reader = FileReader::new(path, is_agent, &mut lines, seen, tally);
        let read = read_lines(path, masker, budget, &mut |record| reader.add(record));
        reader.finish();
        read
    });
    // A file that states no time at all.
    let times = lines.all.iter_mut().map(|line| &mut line.time);
    let times = times.chain(lines.unreadable.iter_mut().map(|(_, time, _)| time));
    times.filter(|time| **time == Timestamp::MIN).for_each(|time| *time = result.fallback_time);
    seen.add(&lines);
    let folder = folder.unwrap_or_default();
    result.sessions = records::sessions(&lines, &folder, masker, result.fallback_time);
    result
}
