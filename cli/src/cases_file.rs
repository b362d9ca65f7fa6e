//! Loads the cases of a command and formats all problems in them.

use std::collections::HashMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::CaseId;
use counterproof_cases::{CaseSpec, LoadError, Marked, Problem, Suite};
use counterproof_store::{RUN_FILE, RunReader};

use crate::command_error::CommandError;
use crate::document_errors::render_excerpt;
use crate::streams::Streams;
use crate::working_copies::reject_bucket;

/// Maximum number of listed problems. More rarely help to understand a file that is wrong throughout.
const MAX_PROBLEMS_LISTED: usize = 20;

const MISSING_HINT: &str = "pass an existing cases file, or a folder of them; docs/cases.md describes the format";

pub(crate) fn load(path: &Utf8Path, streams: &mut Streams) -> Result<Suite, CommandError> {
    reject_bucket(path, "`--cases`")?;
    // Checked first, because the loader would read the documents of the run as cases.
    if path.join(RUN_FILE).is_file() {
        let message = format!("`{path}` is a run folder, not a cases file");
        return Err(CommandError::usage(message).hint("pass the cases file that the run was made with"));
    }
    let loaded = counterproof_cases::load(path);
    // Logged even if loading fails, because a warning may explain the error.
    let warnings = match &loaded {
        Ok(suite) => &suite.warnings,
        Err(error) => error.warnings(),
    };
    for warning in warnings {
        streams.warn(with_excerpt(warning));
    }
    loaded.map_err(|error| load_error(path, error))
}

/// Loads the cases of `--cases`, if it is there.
pub(crate) fn load_named(
    path: Option<&Utf8Path>,
    streams: &mut Streams,
) -> Result<Option<(Utf8PathBuf, Vec<CaseSpec>)>, CommandError> {
    path.map(|path| Ok((path.to_owned(), load(path, streams)?.cases))).transpose()
}

/// The cases of a run whose cases file is not named.
#[derive(Debug)]
pub(crate) enum RecordedCases {
    /// The recorded file asks and expects what it did when the run started.
    Unchanged(Utf8PathBuf, Vec<CaseSpec>),
    /// The recorded file asks or expects something else.
    Changed(Utf8PathBuf),
    /// The recorded path is a folder, or the run does not record what was expected.
    Unknown(Utf8PathBuf),
    /// There is no file at the recorded path.
    Missing,
}

impl RecordedCases {
    /// Finds the cases file of a run: its path is relative to the working directory, or to the run folder. After the folder was
    /// copied, the path that was passed to the runner can still lead to it.
    pub(crate) fn find(run: &RunReader) -> Self {
        let recorded = Utf8Path::new(&run.run().cases_path);
        let as_passed = run.run().cases_path_as_passed.as_ref().map(Utf8PathBuf::from);
        let candidates = [recorded.to_owned(), run.folder().join(recorded)].into_iter().chain(as_passed);
        let Some(path) = candidates.into_iter().find(|path| path.exists()) else { return Self::Missing };
        let path = below_here(&path).unwrap_or(path);
        let (Some(inputs), Some(expectations)) = (&run.run().case_digests, &run.run().expectation_digests) else {
            return Self::Unknown(path);
        };
        // Only a file: a run folder may come from anywhere, and must not make this program read a whole tree of folders.
        if !path.is_file() {
            return Self::Unknown(path);
        }
        let Ok(suite) = counterproof_cases::load(&path) else { return Self::Changed(path) };
        let by_id: HashMap<_, _> = suite.cases.iter().map(|case| (&case.id, case)).collect();
        let is_unchanged = |id: &CaseId| {
            by_id.get(id).is_some_and(|case| {
                inputs.get(id) == Some(&case.input_digest()) && expectations.get(id) == Some(&case.expectation_digest())
            })
        };
        if run.run().selected_case_ids.iter().all(is_unchanged) {
            return Self::Unchanged(path, suite.cases);
        }
        Self::Changed(path)
    }

    /// The path of the cases; `None` if nothing is there.
    pub(crate) fn path(self) -> Option<Utf8PathBuf> {
        match self {
            Self::Unchanged(path, _) | Self::Changed(path) | Self::Unknown(path) => Some(path),
            Self::Missing => None,
        }
    }

    /// The file and its cases, if it asks and expects what it did when the run started.
    pub(crate) fn unchanged(self) -> Option<(Utf8PathBuf, Vec<CaseSpec>)> {
        match self {
            Self::Unchanged(path, cases) => Some((path, cases)),
            Self::Changed(_) | Self::Unknown(_) | Self::Missing => None,
        }
    }
}

/// The path without links, relative to the working directory if it is below it.
fn below_here(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let path = path.canonicalize_utf8().ok()?;
    let here = Utf8Path::new(".").canonicalize_utf8().ok()?;
    Some(path.strip_prefix(&here).map_or_else(|_| path.clone(), Utf8Path::to_owned))
}

fn load_error(path: &Utf8Path, error: LoadError) -> CommandError {
    if let LoadError::Read { source, .. } = &error {
        // A missing file in an existing folder needs another remedy.
        let is_missing = source.kind() == io::ErrorKind::NotFound && !path.exists();
        let error = CommandError::io(error);
        return if is_missing { error.hint(MISSING_HINT) } else { error };
    }
    let problems = error.problems();
    if let [problem] = problems {
        return CommandError::usage(with_excerpt(problem));
    }
    if problems.is_empty() {
        return CommandError::usage(error);
    }
    let indented = |problem: &Problem| format!("  {}", with_excerpt(problem).replace('\n', "\n  "));
    let mut lines: Vec<_> = problems.iter().take(MAX_PROBLEMS_LISTED).map(indented).collect();
    if problems.len() > MAX_PROBLEMS_LISTED {
        lines.push(format!("  and {} more", problems.len() - MAX_PROBLEMS_LISTED));
    }
    CommandError::usage(format!("`{path}` has {} problems\n{}", problems.len(), lines.join("\n")))
}

/// Formats a problem, followed by the invalid expression if there is one.
fn with_excerpt(problem: &Problem) -> String {
    match (&problem.marked, problem.position) {
        (Some(Marked { text, span }), Some(position)) => {
            format!("{problem}\n{}", render_excerpt(text, span.clone(), position))
        }
        _ => problem.to_string(),
    }
}
