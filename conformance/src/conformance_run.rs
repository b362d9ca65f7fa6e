//! Runs all vectors with all programs, and the result of each.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_safe_run::Cancellation;
use counterproof_store::write::{Durability, WriteError, create_folder, write_json};
use rayon::prelude::*;

use crate::check::{Golden, check_expectations, check_ledgers, compare};
use crate::subject::{Subject, SubjectKind};
use crate::trial::{Trial, TrialError, TrialOutcome};
use crate::vectors::{Equivalence, GroupedVector, Vector, VectorCommand, Vectors};

#[derive(Debug)]
pub struct ConformanceRun<'a> {
    pub vectors: &'a Vectors,
    pub golden_folder: &'a Utf8Path,
    /// The programs. Wrappers find the first tool and are compared with it.
    pub subjects: &'a [Subject],
    /// Environment variables for every trial. Variables of a vector take precedence.
    pub environment: BTreeMap<String, String>,
    pub golden_mode: GoldenMode,
    pub cancellation: Cancellation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GoldenMode {
    #[default]
    Compare,
    /// The golden outputs are replaced by the output of the first tool.
    Write,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("no tool is given; wrappers are compared with a tool")]
    NoTool,
    #[error("no vector is in scope")]
    NoVectors,
    #[error("interrupted")]
    Interrupted,
    /// A golden output could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl<'a> ConformanceRun<'a> {
    /// Creates a run that compares with the golden outputs and sets no environment variables.
    pub fn new(vectors: &'a Vectors, golden_folder: &'a Utf8Path, subjects: &'a [Subject]) -> Self {
        Self {
            vectors,
            golden_folder,
            subjects,
            environment: BTreeMap::new(),
            golden_mode: GoldenMode::default(),
            cancellation: Cancellation::default(),
        }
    }

    /// Runs every vector with every program and returns the results in this order. If all vectors of a program are for other
    /// systems, a failed result is added, because nothing was checked.
    pub fn run(&self) -> Result<Vec<VectorResult>, RunError> {
        let is_tool = |subject: &&Subject| subject.kind == SubjectKind::Tool;
        let tool = self.subjects.iter().find(is_tool).ok_or(RunError::NoTool)?;
        // Without vectors every program would pass.
        if self.vectors.in_scope.is_empty() {
            return Err(RunError::NoVectors);
        }
        let mut results = Vec::new();
        for (index, subject) in self.subjects.iter().enumerate() {
            if subject.kind == SubjectKind::Wrapper {
                results.push(self.check_declared_contract(index, subject));
            }
            // Each trial has its own folder, so trials can run in parallel.
            let vectors = self.vectors.in_scope.par_iter();
            let of_subject = vectors.map(|vector| self.run_vector(tool, index, vector));
            let of_subject = of_subject.collect::<Result<Vec<_>, RunError>>()?;
            // A program that no vector was run with has not passed either.
            let is_idle = of_subject.iter().all(VectorResult::is_skipped);
            results.extend(of_subject);
            if is_idle {
                results.push(idle(index));
            }
        }
        Ok(results)
    }

    fn run_vector(&self, tool: &Subject, index: usize, grouped: &GroupedVector) -> Result<VectorResult, RunError> {
        let vector = &grouped.vector;
        let status = match other_platform(vector) {
            Some(reason) => VectorStatus::Skipped(reason),
            // Before the trial, so that an interrupted run ends after the trials that have begun.
            None if self.cancellation.is_cancelled() => return Err(RunError::Interrupted),
            None => {
                let problems = self.problems(tool, &self.subjects[index], grouped)?;
                // The problems of a program that was killed by the cancellation are meaningless.
                if self.cancellation.is_cancelled() {
                    return Err(RunError::Interrupted);
                }
                VectorStatus::from_problems(problems)
            }
        };
        Ok(VectorResult { subject: index, id: vector.id.clone(), name: vector.name.clone(), status })
    }

    fn check_declared_contract(&self, index: usize, wrapper: &Subject) -> VectorResult {
        let contract = format!("M0-{}", self.vectors.contract.trim_start_matches("M0-"));
        let problems = match wrapper.declares(&contract) {
            Ok(true) => Vec::new(),
            Ok(false) => vec![format!("the header does not declare the contract {contract}")],
            Err(error) => vec![format!("failed to read the header: {error}")],
        };
        let (id, name) =
            ("wrapper-contract".to_owned(), "The wrapper declares the contract that it follows".to_owned());
        VectorResult { subject: index, id, name, status: VectorStatus::from_problems(problems) }
    }

    fn problems(&self, tool: &Subject, subject: &Subject, grouped: &GroupedVector) -> Result<Vec<String>, RunError> {
        let vector = &grouped.vector;
        let mut problems = Vec::new();
        let commands = commands(vector);
        // A vector without a command would pass without a check.
        if commands.is_empty() {
            problems.push("the vector has no command".to_owned());
        }
        for (command, expected_file) in &commands {
            let outcome = match self.execute(tool, subject, grouped, command) {
                Ok(outcome) => outcome,
                Err(error) => {
                    // The other variants still run: their problems help to find the cause.
                    problems.push(error.to_string());
                    continue;
                }
            };
            problems.extend(check_expectations(&vector.expected, command, &outcome));
            if let Some(file) = expected_file.as_ref().filter(|file| !outcome.after.contains(file)) {
                problems.push(format!("`{file}` is missing"));
            }
            problems.extend(check_ledgers(&outcome));
            let found = Golden::from_outcome(&outcome);
            if subject.kind == SubjectKind::Wrapper {
                // The tool runs again, because an earlier trial may have had other files in its folder.
                match self.execute(tool, tool, grouped, command) {
                    Ok(outcome) => problems.extend(compare_wrapper(vector, Golden::from_outcome(&outcome), found)),
                    Err(error) => problems.push(format!("the tool failed: {error}")),
                }
            } else if let Some(name) = &vector.golden {
                // Only the first tool: other implementations must not define what is expected.
                if subject == tool && self.golden_mode == GoldenMode::Write {
                    self.write_golden(name, &found)?;
                } else {
                    problems.extend(self.compare_golden(name, &found));
                }
            }
        }
        Ok(problems)
    }

    fn execute(
        &self,
        tool: &Subject,
        subject: &Subject,
        grouped: &GroupedVector,
        command: &VectorCommand,
    ) -> Result<TrialOutcome, TrialError> {
        let GroupedVector { group, vector } = grouped;
        let (setup, environment, cancellation) = (&vector.setup, &self.environment, &self.cancellation);
        Trial { subject, tool: &tool.path, group: *group, setup, command, environment, cancellation }.run()
    }

    fn write_golden(&self, name: &str, found: &Golden) -> Result<(), WriteError> {
        create_folder(self.golden_folder)?;
        write_json(&self.golden_folder.join(name), found, Durability::Cached)
    }

    fn compare_golden(&self, name: &str, found: &Golden) -> Vec<String> {
        match Golden::read(&self.golden_folder.join(name)) {
            Ok(expected) => {
                let differences = compare(&expected, found).into_iter();
                differences.map(|text| format!("differs from `{name}`: {text}")).collect()
            }
            Err(error) => vec![format!("failed to read the golden output `{name}`: {error}")],
        }
    }
}

fn idle(index: usize) -> VectorResult {
    let name = "At least one vector is for this system".to_owned();
    let status = VectorStatus::Failed(vec!["all vectors are for other systems: nothing was checked".to_owned()]);
    VectorResult { subject: index, id: "vectors-here".to_owned(), name, status }
}

fn other_platform(vector: &Vector) -> Option<String> {
    let platform = vector.command.as_ref()?.platform_filter?;
    (!platform.is_current()).then(|| format!("only on {}", platform.as_str()))
}

/// Returns the command of a vector and each of its variants, with the file that a variant must leave.
fn commands(vector: &Vector) -> Vec<(VectorCommand, Option<Utf8PathBuf>)> {
    // Each variant is a trial of its own, because the first one leaves files behind.
    let variants = vector.command_variants.iter().map(|variant| {
        let command = VectorCommand { args: Some(variant.args.clone()), ..VectorCommand::default() };
        (command, Some(variant.expected_file.clone()))
    });
    vector.command.iter().map(|command| (command.clone(), None)).chain(variants).collect()
}

fn compare_wrapper(vector: &Vector, tool: Golden, wrapper: Golden) -> Vec<String> {
    // Both sides are normalised, so that the tool may be the one with other line ends.
    let (tool, wrapper) = if vector.allowed_equivalences.contains(&Equivalence::LineEndings) {
        (tool.with_lf_line_ends(), wrapper.with_lf_line_ends())
    } else {
        (tool, wrapper)
    };
    compare(&tool, &wrapper).into_iter().map(|text| format!("differs from the tool: {text}")).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorResult {
    /// The index of the program among the subjects.
    pub subject: usize,
    /// The id of the vector, or of a check that applies to the program as a whole.
    pub id: String,
    pub name: String,
    pub status: VectorStatus,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorStatus {
    Passed,
    /// At least one check has failed; the texts describe each problem.
    Failed(Vec<String>),
    /// The vector is for another operating system; the text names it.
    Skipped(String),
}

impl VectorStatus {
    pub(crate) fn from_problems(problems: Vec<String>) -> Self {
        if problems.is_empty() { VectorStatus::Passed } else { VectorStatus::Failed(problems) }
    }
}

impl VectorResult {
    pub fn problems(&self) -> &[String] {
        match &self.status {
            VectorStatus::Failed(problems) => problems,
            VectorStatus::Passed | VectorStatus::Skipped(_) => &[],
        }
    }

    pub fn is_failed(&self) -> bool {
        matches!(self.status, VectorStatus::Failed(_))
    }

    pub fn is_skipped(&self) -> bool {
        matches!(self.status, VectorStatus::Skipped(_))
    }
}
