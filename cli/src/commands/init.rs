//! `counterproof init`: writes the files of a new project.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use counterproof_store::read_file;
use counterproof_store::write::{self, Durability};

use super::init_files::{self, AgentKind, CiKind};
use crate::command_error::CommandError;
use crate::streams::Streams;

/// Write the files of a new project: cases, configuration, and a CI job.
///
/// Writes `cases.yaml` with two worked cases, `counterproof.toml`, `.gitignore` lines, the JSON Schemas for editors below
/// `.counterproof/`, and the file of a CI system if one is chosen. A file that exists is never changed; `.gitignore` only gets the
/// lines that it lacks. Asks on a terminal for what is not passed.
///
/// Exit code 0: done. 3: a file could not be written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kind of the agent [default: http]
    #[arg(long, value_enum, value_name = "KIND")]
    agent: Option<AgentKind>,

    /// CI system to write a job for [default: none]
    #[arg(long, value_enum, value_name = "SYSTEM")]
    ci: Option<CiKind>,
}

/// The file that gets lines instead of being written.
const GITIGNORE: &str = ".gitignore";

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let asks = io::stdin().is_terminal() && io::stderr().is_terminal();
    let agent = choose(args.agent, asks, "Which kind of agent do you have?", streams)?;
    let ci = choose(args.ci, asks, "Which CI system runs the checks?", streams)?;
    for file in init_files::all(agent, ci) {
        let path = Utf8PathBuf::from(&file.path);
        if path.exists() {
            streams.print_line(format_args!("unchanged  {path} exists"))?;
            continue;
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_str().is_empty()) {
            write::create_folder(folder).map_err(CommandError::io)?;
        }
        write::write(&path, file.text.as_bytes(), Durability::Synced).map_err(CommandError::io)?;
        streams.print_line(format_args!("created    {path}"))?;
    }
    add_ignored_lines(streams)?;
    if ci != CiKind::None {
        streams.log(
            "note: the package `counterproof` is not published yet; let the install step of the CI file install a wheel of \
             your own, docs/install.md describes how to build one",
        );
    }
    streams.print_line(init_files::next_step(agent))?;
    Ok(Exit::Done)
}

/// Adds the lines to `.gitignore` that it lacks.
fn add_ignored_lines(streams: &mut Streams) -> Result<(), CommandError> {
    let old = match read_file::read_text(GITIGNORE.into(), read_file::MAX_SMALL_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(CommandError::io(format!("failed to read `{GITIGNORE}`: {error}"))),
    };
    let missing: Vec<&str> =
        init_files::IGNORED.into_iter().filter(|line| !old.lines().any(|old| old.trim() == *line)).collect();
    if missing.is_empty() {
        streams.print_line(format_args!("unchanged  {GITIGNORE} has all lines"))?;
        return Ok(());
    }
    let separator = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
    let text = format!("{old}{separator}{}\n", missing.join("\n"));
    write::write(GITIGNORE.into(), text.as_bytes(), Durability::Synced).map_err(CommandError::io)?;
    streams.print_line(format_args!("{}    {GITIGNORE}", if old.is_empty() { "created" } else { "changed" }))?;
    Ok(())
}

/// Returns the passed value, the answer of a person, or the default, which is the first value.
fn choose<T: clap::ValueEnum + Copy + Default>(
    passed: Option<T>,
    asks: bool,
    question: &str,
    streams: &mut Streams,
) -> Result<T, CommandError> {
    if let Some(value) = passed {
        return Ok(value);
    }
    if !asks {
        return Ok(T::default());
    }
    let named = |value: &T| value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let names: Vec<String> = T::value_variants().iter().map(named).collect();
    let default = named(&T::default());
    loop {
        // No line break: the answer follows on the same line.
        let _ = write!(streams.err, "{question} ({}) [{default}] ", names.join(", "));
        let _ = streams.err.flush();
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line).map_err(CommandError::io)?;
        let answer = line.trim();
        if read == 0 || answer.is_empty() {
            return Ok(T::default());
        }
        match T::from_str(answer, true) {
            Ok(value) => return Ok(value),
            Err(_) => streams.log(format_args!("please type one of {}", names.join(", "))),
        }
    }
}
