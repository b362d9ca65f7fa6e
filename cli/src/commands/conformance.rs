//! `counterproof conformance`: runs test vectors against implementations of safe-run.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use counterproof_artifact::{Exit, harmless};
use counterproof_conformance::report::{self, Report};
use counterproof_conformance::{ConformanceRun, GoldenMode, RunError, Subject, SubjectKind, Vectors, VectorsError};
use counterproof_safe_run::{Cancellation, keep_exit_statuses};

use crate::command_error::CommandError;
use crate::signals::on_signal;
use crate::streams::Streams;

/// Run test vectors against implementations of safe-run, and compare wrappers with the tool.
///
/// Each vector runs in a separate folder with each program. The output of the program, its exit code and the files that it
/// writes are compared with the expectations of the vector, and with its golden output if it names one. A wrapper must behave
/// exactly like the first tool: only times and random parts of file names may differ.
///
/// Vectors of groups that do not belong to safe-run are listed as out of scope and do not affect the result.
///
/// Exit code 0: all vectors pass. 1: a vector fails, or no vector applies to this system. 2: the vectors or the options are invalid.
/// 3: a file could not be read or written, or a program does not exist. 4: interrupted; the running programs were killed, their folders
/// were removed, and no results are printed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File with the vectors; golden outputs are in the folder `expected/` next to it
    #[arg(long, value_name = "FILE")]
    vectors: Utf8PathBuf,

    /// Implementations of safe-run; wrappers are compared with the first
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    tool: Vec<Utf8PathBuf>,

    /// Wrappers, which find the first tool through `SAFE_RUN_BIN`
    #[arg(long, value_name = "PATH", num_args = 1..)]
    wrapper: Vec<Utf8PathBuf>,

    /// Environment variable for every vector, such as `SAFE_LOG_STYLE=m0` for vectors with the older log names
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Replace the golden outputs with the output of the first tool
    #[arg(long)]
    write_expected: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// One line per vector
    Text,
    /// One JSON document
    Json,
    /// JUnit XML with one suite per program, for CI servers
    Junit,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let vectors = Vectors::read(&args.vectors).map_err(|error| match error {
        VectorsError::Read { .. } => CommandError::io(error),
        VectorsError::Format { .. } | VectorsError::Vector { .. } => CommandError::usage(error),
    })?;
    let tools = args.tool.iter().map(|path| (SubjectKind::Tool, path));
    let programs = tools.chain(args.wrapper.iter().map(|path| (SubjectKind::Wrapper, path)));
    let subjects = programs.map(|(kind, path)| subject(kind, path)).collect::<Result<Vec<_>, _>>()?;
    // The trials compare exit codes, whatever the parent of this process does with the signals of its children.
    keep_exit_statuses().map_err(CommandError::io)?;
    let cancellation = Cancellation::default();
    let on_interrupt = cancellation.clone();
    on_signal(move || on_interrupt.cancel()).map_err(CommandError::io)?;
    let run = ConformanceRun {
        vectors: &vectors,
        golden_folder: &args.vectors.parent().unwrap_or(Utf8Path::new("")).join("expected"),
        subjects: &subjects,
        environment: args.env.iter().cloned().collect::<BTreeMap<_, _>>(),
        golden_mode: if args.write_expected { GoldenMode::Write } else { GoldenMode::Compare },
        cancellation,
    };
    // An interruption is not an error: it was asked for.
    let results = match run.run() {
        Ok(results) => results,
        Err(RunError::Interrupted) => {
            streams.log("interrupted: the running programs were killed; there are no results");
            return Ok(Exit::Interrupted);
        }
        Err(RunError::Write(error)) => return Err(CommandError::io(error)),
        Err(error @ RunError::NoVectors) => {
            return Err(CommandError::usage(format!("`{}`: {error}", args.vectors))
                .hint("add vectors to the groups `safe_run`, `safe_archive` or `safe_check`"));
        }
        Err(error @ RunError::NoTool) => return Err(CommandError::usage(error)),
    };
    let report = Report { vectors: &vectors, subjects: &subjects, results: &results };
    streams.print_document(&match args.format {
        Format::Text => harmless(&report::text(&report)),
        Format::Json => format!("{:#}\n", report::json(&report)),
        Format::Junit => report::junit(&report).map_err(CommandError::io)?,
    })?;
    Ok(if report.passes() { Exit::Done } else { Exit::Findings })
}

fn subject(kind: SubjectKind, path: &Utf8Path) -> Result<Subject, CommandError> {
    let found = Subject::new(kind, path).and_then(|subject| {
        // A missing program would fail every vector with the same message.
        if subject.path.is_file() { Ok(subject) } else { Err(std::io::Error::other("not a file")) }
    });
    found.map_err(|error| CommandError::io(format!("cannot find the program `{path}`: {error}")))
}
