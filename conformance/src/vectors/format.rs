//! The format of a vector, as the contract defines it. An unknown field is an error, because an expectation that is not checked
//! must not look like one that has passed.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use serde::Deserialize;

/// The part of the tool that a vector checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// The vector runs a command.
    Run,
    /// The vector packs a folder.
    Archive,
    /// The vector passes its arguments without a subcommand.
    Check,
}

impl Group {
    /// Returns the group with this name in the file; `None` for groups of other tools.
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "safe_run" => Some(Group::Run),
            "safe_archive" => Some(Group::Archive),
            "safe_check" => Some(Group::Check),
            _ => None,
        }
    }
}

/// A vector and its group in the file.
#[derive(Debug, Clone)]
pub(crate) struct GroupedVector {
    pub(crate) group: Group,
    pub(crate) vector: Vector,
}

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
    pub(crate) command: Option<VectorCommand>,
    #[serde(default)]
    pub(crate) command_variants: Vec<Variant>,
    pub(crate) expected: Expected,
    /// The name of the golden output.
    pub(crate) golden: Option<String>,
    /// Differences from the tool that a wrapper may have.
    #[serde(default)]
    pub(crate) allowed_equivalences: Vec<Equivalence>,
}

/// A difference that a vector allows for wrappers. Times and random parts of file names may always differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Equivalence {
    /// CRLF instead of LF.
    LineEndings,
}

/// The files that exist before the command.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setup {
    #[serde(default)]
    pub(crate) create_files: Vec<Utf8PathBuf>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VectorCommand {
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

/// The operating systems that a vector is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Platform {
    Unix,
    Windows,
}

impl Platform {
    pub(crate) fn is_current(self) -> bool {
        match self {
            Platform::Unix => cfg!(unix),
            Platform::Windows => cfg!(windows),
        }
    }

    /// The name in the file.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Platform::Unix => "unix",
            Platform::Windows => "windows",
        }
    }
}

/// A signal that a trial can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Signal {
    Term,
    Int,
    Hup,
    Quit,
}

/// One of several equivalent commands. Each must meet the expectations.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    pub(crate) args: Vec<String>,
    pub(crate) expected_file: Utf8PathBuf,
}

/// The expectations of a vector.
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
