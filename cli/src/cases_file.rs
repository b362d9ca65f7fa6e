//! The cases that a command was given, and everything that is wrong with them.

use camino::Utf8Path;
use counterproof_cases::{LoadError, Suite};
use counterproof_store::RUN_FILE;

use crate::command_error::CommandError;
use crate::streams::Streams;

/// Problems that are listed; a file that is wrong throughout needs no more to be understood.
const PROBLEMS_LISTED: usize = 20;

/// Loads the cases, and passes on what their author may not have meant.
pub(crate) fn load(path: &Utf8Path, streams: &mut Streams) -> Result<Suite, CommandError> {
    if path.join(RUN_FILE).is_file() {
        let message = format!("`{path}` is a run folder, and holds what came back for cases");
        return Err(CommandError::usage(message).hint("name the cases file that it was made with"));
    }
    let loaded = counterproof_cases::load(path);
    let warnings = match &loaded {
        Ok(suite) => &suite.warnings,
        Err(error) => error.warnings(),
    };
    for warning in warnings {
        streams.note(format_args!("warning: {warning}"));
    }
    loaded.map_err(|error| load_error(path, error))
}

fn load_error(path: &Utf8Path, error: LoadError) -> CommandError {
    if matches!(error, LoadError::Read { .. }) {
        return CommandError::io(error);
    }
    let problems = error.problems();
    if problems.len() < 2 {
        return CommandError::usage(error);
    }
    let mut lines: Vec<_> = problems
        .iter()
        .take(PROBLEMS_LISTED)
        .map(|problem| format!("  {}", problem.to_string().replace('\n', "\n  ")))
        .collect();
    if problems.len() > PROBLEMS_LISTED {
        lines.push(format!("  and {} more", problems.len() - PROBLEMS_LISTED));
    }
    CommandError::usage(format!("`{path}` has {} problems\n{}", problems.len(), lines.join("\n")))
}
