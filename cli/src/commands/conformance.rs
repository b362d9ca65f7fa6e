//! `counterproof conformance`: vectors and programs in, a verdict for each pair out.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use counterproof_artifact::Exit;
use counterproof_conformance::report::{self, Report};
use counterproof_conformance::{Kind, Request, RunError, Stop, Subject, Vectors, VectorsError, conform};

use crate::command_error::CommandError;
use crate::signals::on_signal;
use crate::streams::Streams;

/// Hold implementations of safe-run against vectors, and wrappers against the tool.
///
/// Each vector is run in a folder of its own with each program. What the program prints, its exit code and the files that it
/// leaves are held against what the vector expects, and against the golden output where the vector names one. A wrapper has to do
/// exactly what the first tool does: only times and random parts of file names may differ.
///
/// Vectors of groups that are none of safe-run's are listed as out of scope, and count as nothing.
///
/// Exit code 0: everything passes. 1: something fails, or no vector is for this system. 2: the vectors or the options cannot be used. 3: a file cannot be read or
/// written, or a program is not there. 4: it was interrupted; the programs that ran and their folders are gone, and nothing is told of the vectors.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file of vectors; golden outputs lie in `expected/` beside it
    #[arg(long, value_name = "FILE")]
    vectors: Utf8PathBuf,

    /// Programs that are to be safe-run; wrappers are held against the first
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    tool: Vec<Utf8PathBuf>,

    /// Wrappers, which find the first tool by `SAFE_RUN_BIN`
    #[arg(long, value_name = "PATH", num_args = 1..)]
    wrapper: Vec<Utf8PathBuf>,

    /// A variable for every vector, such as `SAFE_LOG_STYLE=m0` for vectors with the older names of logs
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,

    /// How the outcome is told
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Write the golden outputs anew, from what the first tool does
    #[arg(long)]
    write_expected: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// A line a vector
    Text,
    /// One document
    Json,
    /// One suite a program, for build servers
    Junit,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("it is written NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let vectors = Vectors::read(&args.vectors).map_err(|error| match error {
        VectorsError::Read { .. } => CommandError::io(error),
        VectorsError::Format { .. } | VectorsError::Vector { .. } => CommandError::usage(error),
    })?;
    let tools = args.tool.iter().map(|path| (Kind::Tool, path));
    let programs = tools.chain(args.wrapper.iter().map(|path| (Kind::Wrapper, path)));
    let subjects = programs.map(|(kind, path)| subject(kind, path)).collect::<Result<Vec<_>, _>>()?;
    let stop = Stop::default();
    let trigger = stop.clone();
    on_signal(move || trigger.trigger()).map_err(CommandError::io)?;
    let request = Request {
        vectors: &vectors,
        expected: &args.vectors.parent().unwrap_or(Utf8Path::new("")).join("expected"),
        subjects: &subjects,
        environment: args.env.iter().cloned().collect::<BTreeMap<_, _>>(),
        writes_golden: args.write_expected,
        stop,
    };
    let verdicts = match conform(&request) {
        Ok(verdicts) => verdicts,
        Err(RunError::Interrupted) => {
            streams.note("interrupted: the programs that ran were killed, and no verdict is told");
            return Ok(Exit::Interrupted);
        }
        Err(RunError::Write(error)) => return Err(CommandError::io(error)),
        Err(error @ RunError::Nothing) => {
            return Err(CommandError::usage(format!("`{}`: {error}", args.vectors))
                .hint("vectors are in scope below `safe_run`, `safe_archive` and `safe_check`"));
        }
        Err(error @ RunError::NoTool) => return Err(CommandError::usage(error)),
    };
    let report = Report { vectors: &vectors, subjects: &subjects, verdicts: &verdicts };
    streams.print(&match args.format {
        Format::Text => report::text(&report),
        Format::Json => format!("{:#}\n", report::json(&report)),
        Format::Junit => report::junit(&report),
    })?;
    Ok(if report.passes() { Exit::Done } else { Exit::Findings })
}

fn subject(kind: Kind, path: &Utf8Path) -> Result<Subject, CommandError> {
    let found = Subject::new(kind, path).and_then(|subject| {
        if subject.path.is_file() { Ok(subject) } else { Err(std::io::Error::other("it is no file")) }
    });
    found.map_err(|error| CommandError::io(format!("failed to find the program `{path}`: {error}")))
}
