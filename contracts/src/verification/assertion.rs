//! Assertions: CEL expressions over the output of the agent, the input of the contract and the outcome of the command.

use std::io;
use std::ops::Range;

use camino::Utf8Path;
use counterproof_artifact::{Href, Sha256Digest, one_line};
use counterproof_expression::{CompileError, Expression, NoValue, Outcome, Reading};
use counterproof_store::confined_path::{self, ResolveError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::contract::ContractInput;
use crate::process::FinishedCommand;

pub const VARIABLES: [&str; 5] = ["output", "input", "exit_code", "stdout", "stderr"];

/// The values of an assertion that is not met: how many, and the longest part and value in characters.
const MAX_READINGS: usize = 3;
const MAX_PART_CHARS: usize = 80;
const MAX_VALUE_CHARS: usize = 80;

#[derive(Debug, Clone)]
pub struct Assertion {
    expression: Expression,
    reads: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum AssertionOutcome {
    Met,
    NotMet,
    /// It has no value, so it is not met.
    Error {
        message: String,
        /// The bytes of the assertion that the reason is about.
        span: Range<usize>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssertionResult {
    pub assertion: String,
    #[serde(flatten)]
    pub outcome: AssertionOutcome,
    /// The values that an assertion that is not met has read, such as `exit_code is 1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
}

/// The values of the variables, and the streams that are not complete.
#[derive(Debug)]
pub struct AssertionInputs {
    values: [Value; 5],
    cut: Vec<&'static str>,
}

impl AssertionInputs {
    /// Takes the values from the contract's input, the agent's output and the finished command. Bytes of the streams that are
    /// not UTF-8 become U+FFFD.
    pub fn new(input: &ContractInput, output: &Value, command: &FinishedCommand) -> Self {
        let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes));
        let streams = [("stdout", &command.stdout), ("stderr", &command.stderr)];
        // The fields that the contract has, and no others: a missing constraint must not read as null.
        let mut fields = json!({ "type": input.input_type, "data": input.data });
        if let Some(constraints) = &input.constraints {
            fields["constraints"] = Value::Object(constraints.clone());
        }
        Self {
            values: [
                output.clone(),
                fields,
                command.exit_code().into(),
                text(&command.stdout.bytes),
                text(&command.stderr.bytes),
            ],
            cut: streams.into_iter().filter(|(_, head)| head.is_cut).map(|(name, _)| name).collect(),
        }
    }
}

impl Assertion {
    pub fn compile(text: &str) -> Result<Self, CompileError> {
        let expression = Expression::compile(text, &VARIABLES)?;
        // Found once, at compile time, because it takes further compilations.
        let reads = VARIABLES.into_iter().filter(|variable| reads(text, variable)).collect();
        Ok(Self { expression, reads })
    }

    pub fn source(&self) -> &str {
        self.expression.source()
    }

    /// True if the assertion reads a variable. A local variable of a macro with the same name does not count.
    pub fn reads(&self, variable: &str) -> bool {
        self.reads.contains(&variable)
    }

    pub fn check(&self, inputs: &AssertionInputs) -> AssertionResult {
        let whole = 0..self.source().len();
        let cut = inputs.cut.iter().find(|stream| self.reads(stream));
        let outcome = match cut {
            // The part that is missing could change the result.
            Some(stream) => {
                let message = format!("`{stream}` is longer than the limit, so no assertion can be decided by it");
                AssertionOutcome::Error { message, span: whole }
            }
            None => outcome(self.expression.evaluate(&inputs.values.each_ref()), whole),
        };
        let got = (outcome == AssertionOutcome::NotMet).then(|| self.got(inputs)).flatten();
        AssertionResult { assertion: self.source().to_owned(), outcome, got }
    }

    fn got(&self, inputs: &AssertionInputs) -> Option<String> {
        let values = inputs.values.each_ref();
        let value = |reading: Reading| {
            let part = one_line(&self.source()[reading.span], MAX_PART_CHARS);
            format!("{part} is {}", one_line(&reading.value, MAX_VALUE_CHARS))
        };
        let found: Vec<String> = self.expression.readings(&values, MAX_READINGS).into_iter().map(value).collect();
        (!found.is_empty()).then(|| found.join(", "))
    }

    pub fn not_evaluated(&self, reason: &impl ToString) -> AssertionResult {
        let outcome = AssertionOutcome::Error { message: reason.to_string(), span: 0..self.source().len() };
        AssertionResult { assertion: self.source().to_owned(), outcome, got: None }
    }
}

impl AssertionResult {
    pub fn is_met(&self) -> bool {
        self.outcome == AssertionOutcome::Met
    }
}

fn reads(text: &str, variable: &str) -> bool {
    let others: Vec<&str> = VARIABLES.into_iter().filter(|other| *other != variable).collect();
    // The text decides first: most assertions name one variable, and compiling is slow.
    text.contains(variable) && Expression::compile(text, &others).is_err()
}

fn outcome(outcome: Outcome, whole: Range<usize>) -> AssertionOutcome {
    match outcome {
        Outcome::True => AssertionOutcome::Met,
        Outcome::False => AssertionOutcome::NotMet,
        Outcome::Failed(error) => AssertionOutcome::Error { message: error.message, span: error.span },
        Outcome::TooLong => AssertionOutcome::Error { message: NoValue::TooLong.to_string(), span: whole },
    }
}

pub const MAX_ARTIFACT_BYTES: u64 = 16 << 30;

/// Characters that would make a path a pattern. Brackets and braces occur in file names.
const PATTERN: [char; 2] = ['*', '?'];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactCheck {
    pub path: String,
    #[serde(flatten)]
    pub found: FoundArtifact,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum FoundArtifact {
    Found { sha256: Sha256Digest, bytes: u64 },
    Problem { code: ArtifactProblem, message: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactProblem {
    /// The path is not a relative path of one file.
    InvalidPath,
    Missing,
    /// The path leaves the working directory through a symbolic link.
    LeavesFolder,
    /// The path names a folder, a pipe or a device.
    NotAFile,
    TooLarge,
    Unreadable,
}

impl ArtifactCheck {
    pub const fn is_found(&self) -> bool {
        matches!(self.found, FoundArtifact::Found { .. })
    }

    /// Returns the problem with a path that needs no file system: it is absolute, leaves the working directory, or is a pattern.
    pub fn path_problem(path: &str) -> Option<String> {
        if path.contains(PATTERN) {
            return Some(format!("`{}` is a pattern; name each file", path.escape_debug()));
        }
        path.parse::<Href>().err().map(|error| error.to_string())
    }
}

pub fn check_artifacts(folder: &Utf8Path, paths: &[String]) -> Vec<ArtifactCheck> {
    let check = |path: &String| {
        let found = read(folder, path).map_or_else(
            |(code, message)| FoundArtifact::Problem { code, message },
            |(sha256, bytes)| FoundArtifact::Found { sha256, bytes },
        );
        ArtifactCheck { path: path.clone(), found }
    };
    paths.iter().map(check).collect()
}

fn read(folder: &Utf8Path, path: &str) -> Result<(Sha256Digest, u64), (ArtifactProblem, String)> {
    // Contracts are checked when they are added; this is for a store of an older program.
    if let Some(problem) = ArtifactCheck::path_problem(path) {
        return Err((ArtifactProblem::InvalidPath, problem));
    }
    let unreadable = |error: io::Error| (ArtifactProblem::Unreadable, format!("`{path}` cannot be read: {error}"));
    let (file, length) = confined_path::open_with_length(folder, path).map_err(|error| match error {
        ResolveError::Missing { .. } => (ArtifactProblem::Missing, format!("`{path}` does not exist")),
        ResolveError::Escapes { .. } => (ArtifactProblem::LeavesFolder, error.to_string()),
        ResolveError::NotAFile { .. } => (ArtifactProblem::NotAFile, error.to_string()),
        ResolveError::Io { source, .. } => unreadable(source),
    })?;
    // Before the file is read: hashing it could take hours.
    if length > MAX_ARTIFACT_BYTES {
        let message = format!("`{path}` has {length} bytes; at most {MAX_ARTIFACT_BYTES} are allowed");
        return Err((ArtifactProblem::TooLarge, message));
    }
    // A file that grows while it is read ends at its first length.
    Sha256Digest::from_reader(io::Read::take(file, length)).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use counterproof_store::write::{Durability, write};

    use super::*;

    fn inputs() -> AssertionInputs {
        AssertionInputs {
            values: [
                json!({"test_coverage": true, "modified_files": ["a"], "peak_memory_mb": 105, "name": "x"}),
                json!({"type": "t", "data": {"files": []}, "constraints": {"memory_baseline": 100}}),
                json!(1),
                json!("1 passed\n"),
                json!("warning"),
            ],
            cut: vec!["stderr"],
        }
    }

    fn check(text: &str) -> AssertionOutcome {
        Assertion::compile(text).unwrap().check(&inputs()).outcome
    }

    #[test]
    fn the_assertions_of_the_published_examples_are_evaluated() {
        for text in [
            "output.test_coverage == true",
            "output.modified_files.len() > 0",
            "output.peak_memory_mb <= input.constraints.memory_baseline * 1.1",
            "exit_code == 1",
            "stdout.contains('passed') && input.type == 't'",
        ] {
            assert_eq!(check(text), AssertionOutcome::Met, "{text}");
        }
        assert_eq!(check("exit_code == 0"), AssertionOutcome::NotMet);
    }

    #[test]
    fn an_assertion_that_is_not_met_has_the_values_that_it_read() {
        let got = |text: &str| Assertion::compile(text).unwrap().check(&inputs()).got;
        assert_eq!(got("exit_code == 0").as_deref(), Some("exit_code is 1"));
        assert_eq!(
            got("output.peak_memory_mb <= input.constraints.memory_baseline").as_deref(),
            Some("output.peak_memory_mb is 105, input.constraints.memory_baseline is 100")
        );
        assert_eq!(got("exit_code == 1"), None, "it is met");
    }

    #[test]
    fn what_has_no_boolean_value_is_an_error_and_never_met() {
        for text in ["output.missing", "output.missing == 1", "output.name", "input.constraints.none > 1", "1 / 0 == 1"]
        {
            assert!(matches!(check(text), AssertionOutcome::Error { .. }), "{text}");
        }
        let text = "output.name == 'x' && output.missing > 1";
        let AssertionOutcome::Error { span, .. } = check(text) else { panic!() };
        assert_eq!(&text[span], "output.missing");
        for text in ["outputs.a", "fail(", ""] {
            assert!(Assertion::compile(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_assertion_over_a_stream_that_is_cut_is_an_error() {
        let AssertionOutcome::Error { message, .. } = check("!stderr.contains('error')") else { panic!() };
        assert_eq!(message, "`stderr` is longer than the limit, so no assertion can be decided by it");
        assert_eq!(check("stdout != 'stderr'"), AssertionOutcome::Met);
    }

    #[test]
    fn only_variables_that_are_read_count() {
        let reads = |text: &str| Assertion::compile(text).unwrap().reads("exit_code");
        assert!(reads("exit_code == 0") && reads("output.a || exit_code in [0, 3]"));
        for text in ["output.exit_code == 0", "stdout == 'exit_code'", "output.all(exit_code, exit_code > 0)"] {
            assert!(!reads(text), "{text}");
        }
    }

    #[test]
    fn artifacts_are_files_within_the_folder() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap();
        let folder = root.join("work");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        write(&folder.join("sub/[id].txt"), b"content", Durability::Cached).unwrap();
        write(&root.join("secret"), b"s", Durability::Cached).unwrap();
        symlink("sub/[id].txt", folder.join("link")).unwrap();
        symlink("../secret", folder.join("out")).unwrap();
        symlink("..", folder.join("up")).unwrap();
        let check = |path: &str| check_artifacts(&folder, &[path.to_owned()]).remove(0).found;
        for path in ["sub/[id].txt", "link"] {
            let expected = FoundArtifact::Found { sha256: Sha256Digest::from_bytes(b"content"), bytes: 7 };
            assert_eq!(check(path), expected, "{path}");
        }
        for (path, expected) in [
            ("none", ArtifactProblem::Missing),
            ("sub/none/x", ArtifactProblem::Missing),
            ("sub", ArtifactProblem::NotAFile),
            ("out", ArtifactProblem::LeavesFolder),
            ("up/secret", ArtifactProblem::LeavesFolder),
            ("../secret", ArtifactProblem::InvalidPath),
            ("/etc/hostname", ArtifactProblem::InvalidPath),
            ("sub/*.txt", ArtifactProblem::InvalidPath),
            ("", ArtifactProblem::InvalidPath),
        ] {
            match check(path) {
                FoundArtifact::Problem { code, message } => assert_eq!(code, expected, "{path}: {message}"),
                found @ FoundArtifact::Found { .. } => panic!("{path}: {found:?}"),
            }
        }
    }
}
