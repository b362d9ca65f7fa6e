//! The file of vectors, in the format that the contract defines. What this version does not know in a vector is an error: a
//! check that is not made must not look like one that passed.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;
use serde_json::Value;

/// A file of vectors.
#[derive(Debug, Clone)]
pub struct Vectors {
    /// The version of the contract.
    pub contract: String,
    pub(crate) in_scope: Vec<(Group, Vector)>,
    /// The ids of vectors for tools that are none of ours, with their group.
    pub out_of_scope: Vec<(String, String)>,
}

/// Which part of the tool a vector is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// A command is run.
    Run,
    /// A folder is packed.
    Archive,
    /// The arguments are given as they are.
    Check,
}

impl Group {
    fn of(name: &str) -> Option<Self> {
        match name {
            "safe_run" => Some(Group::Run),
            "safe_archive" => Some(Group::Archive),
            "safe_check" => Some(Group::Check),
            _ => None,
        }
    }
}

/// One vector.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vector {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default, rename = "m0_spec")]
    _m0_spec: Vec<String>,
    #[serde(default, rename = "description")]
    _description: String,
    #[serde(default)]
    pub(crate) setup: Setup,
    pub(crate) command: Option<Command>,
    #[serde(default)]
    pub(crate) command_variants: Vec<Variant>,
    pub(crate) expected: Expected,
    /// The file below `expected/` that holds the whole output.
    pub(crate) golden: Option<String>,
    /// Differences that a wrapper may have here.
    #[serde(default)]
    pub(crate) allowed_equivalences: Vec<Equivalence>,
}

/// A difference that a wrapper may have where a vector says so. Times and random parts of file names may always differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Equivalence {
    /// CRLF for LF.
    LineEndings,
}

/// What is there before the command.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setup {
    #[serde(default)]
    pub(crate) create_files: Vec<Utf8PathBuf>,
}

/// What is run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Command {
    pub(crate) args: Option<Vec<String>>,
    pub(crate) args_template: Option<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) print_stdout: Option<String>,
    pub(crate) print_stderr: Option<String>,
    pub(crate) output_lines: Option<Vec<String>>,
    pub(crate) script_path: Option<String>,
    pub(crate) file_path: Option<String>,
    pub(crate) check_args: Option<Vec<String>>,
    pub(crate) interrupt_signal: Option<Signal>,
    pub(crate) platform_filter: Option<Platform>,
    pub(crate) stdin: Option<String>,
}

/// The systems that a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Platform {
    Unix,
    Windows,
}

impl Platform {
    pub(crate) fn is_here(self) -> bool {
        match self {
            Platform::Unix => cfg!(unix),
            Platform::Windows => cfg!(windows),
        }
    }

    /// As a vector has it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Platform::Unix => "unix",
            Platform::Windows => "windows",
        }
    }
}

/// A signal that a command may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Signal {
    Term,
    Int,
    Hup,
    Quit,
}

/// One of several commands, each of which has to do.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    pub(crate) args: Vec<String>,
    pub(crate) expected_file: Utf8PathBuf,
}

/// What must be so in the end.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    pub(crate) exit_code: Option<i32>,
    #[serde(rename = "exit_code_oneOf")]
    pub(crate) exit_code_one_of: Option<Vec<i32>>,
    pub(crate) exit_code_range: Option<(i32, i32)>,
    #[serde(default)]
    pub(crate) stdout_contains: Vec<String>,
    #[serde(default)]
    pub(crate) stderr_contains: Vec<String>,
    pub(crate) artifacts_created: Option<bool>,
    #[serde(default)]
    pub(crate) file_exists: Vec<Utf8PathBuf>,
    #[serde(default)]
    pub(crate) file_not_exists: Vec<Utf8PathBuf>,
    pub(crate) log_file_pattern: Option<String>,
    #[serde(default)]
    pub(crate) log_content_markers: Vec<String>,
    #[serde(default)]
    pub(crate) log_content_absent: Vec<String>,
    pub(crate) log_file_in_dir: Option<Utf8PathBuf>,
    #[serde(default)]
    pub(crate) archive_contains: Vec<String>,
    pub(crate) original_file_unchanged: Option<Utf8PathBuf>,
    pub(crate) file_count_unchanged: Option<bool>,
}

/// A file of vectors that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    /// It could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not in the format.
    #[error("`{path}` is no file of vectors")]
    Format {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// One of the vectors is not in the format.
    #[error("vector `{id}` in `{path}` cannot be used")]
    Vector {
        /// The vector.
        id: String,
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
}

#[derive(Deserialize)]
struct Wire {
    m0_contract_version: String,
    vectors: serde_json::Map<String, Value>,
}

impl Vectors {
    /// The same with no other vectors than these.
    #[must_use]
    pub fn only(mut self, ids: &[&str]) -> Self {
        self.in_scope.retain(|(_, vector)| ids.contains(&vector.id.as_str()));
        self.out_of_scope.clear();
        self
    }

    /// Reads a file.
    pub fn read(path: &Utf8Path) -> Result<Self, VectorsError> {
        let bytes = std::fs::read(path).map_err(|source| VectorsError::Read { path: path.to_owned(), source })?;
        let format = |source| VectorsError::Format { path: path.to_owned(), source };
        let wire: Wire = serde_json::from_slice(&bytes).map_err(format)?;
        let mut vectors = Self { contract: wire.m0_contract_version, in_scope: Vec::new(), out_of_scope: Vec::new() };
        for (name, list) in wire.vectors {
            let list: Vec<Value> = serde_json::from_value(list).map_err(format)?;
            for document in list {
                let id = document["id"].as_str().unwrap_or("without an id").to_owned();
                let Some(group) = Group::of(&name) else {
                    vectors.out_of_scope.push((name.clone(), id));
                    continue;
                };
                let vector = serde_json::from_value(document).map_err(|source| VectorsError::Vector {
                    id,
                    path: path.to_owned(),
                    source,
                })?;
                vectors.in_scope.push((group, vector));
            }
        }
        Ok(vectors)
    }
}
