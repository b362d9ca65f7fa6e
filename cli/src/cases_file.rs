//! Loads the cases of a command and formats all problems in them.

use std::io;

use camino::Utf8Path;
use counterproof_cases::{LoadError, Marked, Problem, Suite};
use counterproof_store::RUN_FILE;

use crate::command_error::CommandError;
use crate::document_errors::render_excerpt;
use crate::streams::Streams;

/// Maximum number of listed problems. More rarely help to understand a file that is wrong throughout.
const MAX_PROBLEMS_LISTED: usize = 20;

const MISSING_HINT: &str = "pass an existing cases file, or a folder of them; docs/cases.md describes the format";

pub(crate) fn load(path: &Utf8Path, streams: &mut Streams) -> Result<Suite, CommandError> {
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
