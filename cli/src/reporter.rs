//! How a run is told: the reporter that was asked for, and the count of failures for the summary after it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use counterproof_artifact::CaseId;
use counterproof_runner::{EventKind, FailureNote, JsonLines, Plain, Reason, Reporter, RunEvent};

use crate::command_error::CommandError;
use crate::progress_bar::Progress;

/// Failed cases that are named at the end.
const NAMED: usize = 10;

/// Whom a run is told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Style {
    /// Somebody at a terminal.
    Human,
    /// A log.
    Plain,
    /// A program.
    Jsonl,
}

/// A reporter of one style.
pub(crate) struct Told<'out> {
    voice: Voice<'out>,
    failures: Failures,
}

enum Voice<'out> {
    Human(Progress),
    Plain(Plain<io::Stderr>),
    Jsonl(JsonLines<&'out mut dyn Write>),
}

impl<'out> Told<'out> {
    /// JSON goes to `out`, everything else to standard error.
    pub(crate) fn new(style: Style, out: &'out mut dyn Write) -> Self {
        let voice = match style {
            Style::Human => Voice::Human(Progress::on_stderr()),
            Style::Plain => Voice::Plain(Plain::new(io::stderr())),
            Style::Jsonl => Voice::Jsonl(JsonLines::new(out)),
        };
        Self { voice, failures: Failures::default() }
    }

    /// Ends the telling, and gives the failures that were told of.
    pub(crate) fn finish(self) -> Result<Failures, CommandError> {
        let Voice::Jsonl(lines) = self.voice else { return Ok(self.failures) };
        match lines.finish() {
            // Whoever stops reading changes nothing about how the run ends.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CommandError::io(error)),
            _ => Ok(self.failures),
        }
    }
}

impl Reporter for Told<'_> {
    fn report(&mut self, event: &RunEvent) {
        if let EventKind::CaseFinished { case_id, attempts, failure: Some(failure) } = &event.kind {
            self.failures.note(case_id, *attempts, failure);
        }
        match &mut self.voice {
            Voice::Human(progress) => progress.report(event),
            Voice::Plain(plain) => plain.report(event),
            Voice::Jsonl(lines) => lines.report(event),
        }
    }
}

/// The failed cases: counted by class, and those whose ids sort first by name. Displayed, such as `1 timeout, 2 http_error`.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    by_class: BTreeMap<&'static str, usize>,
    by_name: BTreeMap<&'static str, usize>,
    first: BTreeMap<CaseId, String>,
    others: usize,
    first_asked: Option<CaseId>,
}

impl Failures {
    fn note(&mut self, case_id: &CaseId, attempts: u32, failure: &FailureNote) {
        if attempts > 0 && self.first_asked.is_none() {
            self.first_asked = Some(case_id.clone());
        }
        *self.by_class.entry(failure.class.as_str()).or_default() += 1;
        *self.by_name.entry(failure.name).or_default() += 1;
        let status = failure.status.map(|status| format!(" {status}")).unwrap_or_default();
        self.first.insert(case_id.clone(), format!("{}{status}", failure.name));
        if self.first.len() > NAMED {
            self.first.pop_last();
            self.others += 1;
        }
    }

    /// The first case that was asked and failed.
    pub(crate) const fn first_asked(&self) -> Option<&CaseId> {
        self.first_asked.as_ref()
    }

    /// True where a failure has this name.
    pub(crate) fn has(&self, reason: Reason) -> bool {
        self.by_name.contains_key(reason.name())
    }

    /// The one name that so many failures have, where they have one.
    pub(crate) fn all_as_one(&self, count: usize) -> Option<&'static str> {
        self.by_name.iter().find(|(_, of_name)| **of_name == count).map(|(name, _)| *name)
    }

    /// A line for each of the first failures, with what `more` knows of a case, and one for the others.
    pub(crate) fn lines(&self, more: impl Fn(&CaseId) -> String) -> impl Iterator<Item = String> {
        let others = (self.others > 0).then(|| format!("and {} more", self.others));
        self.first.iter().map(move |(case_id, failure)| format!("{case_id}: {failure}{}", more(case_id))).chain(others)
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.by_class.iter().map(|(class, count)| format!("{count} {class}")).collect();
        f.write_str(&parts.join(", "))
    }
}
