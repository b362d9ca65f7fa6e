//! All vectors with all programs.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{Durability, WriteError, create_folder, write_json};

use rayon::prelude::*;

use crate::cancellation::Stop;
use crate::check::{File, Golden, Text, drift, judge, ledger};
use crate::subject::{Kind, Subject};
use crate::trial::{Contents, Outcome, Trial};
use crate::vectors::{Command, Equivalence, Group, Vector, Vectors};

/// What is to be tried, and how.
#[derive(Debug)]
pub struct Request<'a> {
    /// The vectors.
    pub vectors: &'a Vectors,
    /// The folder of golden outputs, which lies beside the file of vectors.
    pub expected: &'a Utf8Path,
    /// The programs. Wrappers are held against the first tool, and find it.
    pub subjects: &'a [Subject],
    /// Variables for every trial; those of a vector take precedence.
    pub environment: BTreeMap<String, String>,
    /// The golden outputs are written anew, from what the first tool does.
    pub writes_golden: bool,
    /// Once it is triggered, what runs is killed, its folder goes, and nothing more is begun.
    pub stop: Stop,
}

/// What became of a vector with a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The program, by its place among the subjects.
    pub subject: usize,
    /// The vector's id.
    pub id: String,
    /// The vector's name.
    pub name: String,
    /// What is wrong; empty where all is well.
    pub wrong: Vec<String>,
    /// Why it was not run on this system.
    pub skipped: Option<String>,
}

/// Programs that cannot be tried.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Wrappers need a tool.
    #[error("a wrapper is held against a tool, and no tool was named")]
    NoTool,
    /// There is nothing to run.
    #[error("no vector is in scope")]
    Nothing,
    /// It was told to end.
    #[error("interrupted")]
    Interrupted,
    /// A golden output could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Tries every vector with every program, in their order. Where none is for this system, a verdict that fails says so.
pub fn conform(request: &Request<'_>) -> Result<Vec<Verdict>, RunError> {
    let tool = request.subjects.iter().find(|subject| subject.kind == Kind::Tool).ok_or(RunError::NoTool)?;
    if request.vectors.in_scope.is_empty() {
        return Err(RunError::Nothing);
    }
    let mut verdicts = Vec::new();
    for (place, subject) in request.subjects.iter().enumerate() {
        if subject.kind == Kind::Wrapper {
            verdicts.push(declared(request, place, subject));
        }
        // Each in a folder of its own, so they do not see one another.
        let tried = request.vectors.in_scope.par_iter().map(|(group, vector)| {
            let (id, name) = (vector.id.clone(), vector.name.clone());
            let verdict = Verdict { subject: place, id, name, wrong: Vec::new(), skipped: elsewhere(vector) };
            if verdict.skipped.is_some() {
                return Ok(verdict);
            }
            if request.stop.is_triggered() {
                return Err(RunError::Interrupted);
            }
            let wrong = tried(request, tool, subject, (*group, vector))?;
            // What was killed for it says nothing about the program.
            if request.stop.is_triggered() { Err(RunError::Interrupted) } else { Ok(Verdict { wrong, ..verdict }) }
        });
        let tried = tried.collect::<Result<Vec<_>, RunError>>()?;
        let is_idle = tried.iter().all(|verdict| verdict.skipped.is_some());
        verdicts.extend(tried);
        if is_idle {
            verdicts.push(idle(place));
        }
    }
    Ok(verdicts)
}

/// A program with which nothing was tried has not passed.
fn idle(place: usize) -> Verdict {
    let name = "At least one vector is for this system".to_owned();
    let wrong = vec!["all vectors are for other systems: nothing was checked".to_owned()];
    Verdict { subject: place, id: "vectors-here".to_owned(), name, wrong, skipped: None }
}

/// A wrapper says which contract it follows.
fn declared(request: &Request<'_>, place: usize, subject: &Subject) -> Verdict {
    let contract = format!("M0-{}", request.vectors.contract.trim_start_matches("M0-"));
    let wrong = match subject.declares(&contract) {
        Ok(true) => Vec::new(),
        Ok(false) => vec![format!("the header does not declare the contract {contract}")],
        Err(error) => vec![format!("the header cannot be read: {error}")],
    };
    let name = "The wrapper declares the contract that it follows".to_owned();
    Verdict { subject: place, id: "wrapper-contract".to_owned(), name, wrong, skipped: None }
}

/// Why a vector is not for this system.
fn elsewhere(vector: &Vector) -> Option<String> {
    let platform = vector.command.as_ref()?.platform_filter?;
    (!platform.is_here()).then(|| format!("only on {}", platform.word()))
}

/// The commands of a vector: its own, or each of its variants.
fn commands(vector: &Vector) -> Vec<(Command, Option<Utf8PathBuf>)> {
    let variants = vector.command_variants.iter().map(|variant| {
        let command = Command { args: Some(variant.args.clone()), ..Command::default() };
        (command, Some(variant.expected_file.clone()))
    });
    vector.command.iter().map(|command| (command.clone(), None)).chain(variants).collect()
}

fn tried(
    request: &Request<'_>,
    tool: &Subject,
    subject: &Subject,
    (group, vector): (Group, &Vector),
) -> Result<Vec<String>, RunError> {
    let mut wrong = Vec::new();
    let commands = commands(vector);
    if commands.is_empty() {
        wrong.push("the vector has no command".to_owned());
    }
    for (command, file) in &commands {
        let trial = |subject| {
            let (environment, stop) = (&request.environment, &request.stop);
            Trial { subject, tool: &tool.path, group, setup: &vector.setup, command, environment, stop }.run()
        };
        let outcome = match trial(subject) {
            Ok(outcome) => outcome,
            Err(error) => {
                wrong.push(error);
                continue;
            }
        };
        wrong.extend(judge(&vector.expected, command, &outcome));
        if let Some(file) = file.as_ref().filter(|file| !outcome.after.holds(file)) {
            wrong.push(format!("`{file}` is missing"));
        }
        wrong.extend(ledgers(&outcome));
        let found = Golden::of(&outcome);
        if subject.kind == Kind::Wrapper {
            // The tool runs anew, for what it did before may have been with other files around it.
            match trial(tool) {
                Ok(canonical) => wrong.extend(equivalent(vector, Golden::of(&canonical), found)),
                Err(error) => wrong.push(format!("the tool itself: {error}")),
            }
        } else if let Some(name) = &vector.golden {
            wrong.extend(golden(request, name, subject == tool, &found)?);
        }
    }
    Ok(wrong)
}

/// The rules that every ledger has to keep.
fn ledgers(outcome: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, contents) in outcome.after.in_folder(&outcome.log_folder) {
        let Contents::Bytes(bytes) = contents else { continue };
        match ledger::read(&String::from_utf8_lossy(bytes)) {
            None => {}
            Some(Ok(events)) => wrong.extend(ledger::rules(&events)),
            Some(Err(error)) => wrong.push(format!("`{name}` is malformed: {error}")),
        }
    }
    wrong
}

fn equivalent(vector: &Vector, canonical: Golden, found: Golden) -> Vec<String> {
    let normal = |golden: Golden| {
        if !vector.allowed_equivalences.contains(&Equivalence::LineEndings) {
            return golden;
        }
        let file = |file: File| match file {
            File::Contents(text) => File::Contents(text.with_plain_line_ends()),
            other @ (File::Archive { .. } | File::Link { .. } | File::Other { .. }) => other,
        };
        let plain = Text::with_plain_line_ends;
        let files = golden.files.into_iter().map(|(path, contents)| (path, file(contents))).collect();
        Golden { stdout: plain(golden.stdout), stderr: plain(golden.stderr), files, ..golden }
    };
    let told = drift(&normal(canonical), &normal(found));
    told.into_iter().map(|text| format!("differs from the tool: {text}")).collect()
}

fn golden(request: &Request<'_>, name: &str, is_first: bool, found: &Golden) -> Result<Vec<String>, RunError> {
    let path = request.expected.join(name);
    if request.writes_golden && is_first {
        create_folder(request.expected)?;
        write_json(&path, found, Durability::Cached)?;
        return Ok(Vec::new());
    }
    let read = std::fs::read(&path).map_err(|error| error.to_string());
    let read = read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
    Ok(match read {
        Ok(expected) => {
            drift(&expected, found).into_iter().map(|text| format!("differs from `{name}`: {text}")).collect()
        }
        Err(error) => vec![format!("the golden output `{name}` cannot be read: {error}")],
    })
}
