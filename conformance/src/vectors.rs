//! The vectors: their format and the file that holds them.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone)]
pub struct Vectors {
    pub contract: String,
    pub(crate) in_scope: Vec<GroupedVector>,
    /// The group and the id of each vector that is for another tool.
    pub out_of_scope: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum VectorsError {
    #[error("failed to read `{path}`")]
    Read { path: Utf8PathBuf, source: std::io::Error },
    #[error("`{path}` is not a file of vectors")]
    Format { path: Utf8PathBuf, source: serde_json::Error },
    #[error("invalid vector `{id}` in `{path}`")]
    Vector { id: String, path: Utf8PathBuf, source: serde_json::Error },
}

#[derive(Deserialize)]
struct Document {
    m0_contract_version: String,
    vectors: serde_json::Map<String, Value>,
}

impl Vectors {
    #[must_use]
    pub fn only(mut self, ids: &[&str]) -> Self {
        self.in_scope.retain(|GroupedVector { vector, .. }| ids.contains(&vector.id.as_str()));
        self.out_of_scope.clear();
        self
    }

    pub fn read(path: &Utf8Path) -> Result<Self, VectorsError> {
        let bytes = read_file::read_argument(path, read_file::MAX_DOCUMENT_BYTES)
            .map_err(|source| VectorsError::Read { path: path.to_owned(), source })?;
        let format = |source| VectorsError::Format { path: path.to_owned(), source };
        let document: Document = serde_json::from_slice(&bytes).map_err(format)?;
        let mut vectors =
            Self { contract: document.m0_contract_version, in_scope: Vec::new(), out_of_scope: Vec::new() };
        for (name, list) in document.vectors {
            let list: Vec<Value> = serde_json::from_value(list).map_err(format)?;
            for value in list {
                // Read first, so that an error about the other fields can name the vector.
                let id = value["id"].as_str().unwrap_or("without id").to_owned();
                // Kept for the report: silently dropped vectors would look like passed ones.
                let Some(group) = Group::parse(&name) else {
                    vectors.out_of_scope.push((name.clone(), id));
                    continue;
                };
                let vector = serde_json::from_value(value).map_err(|source| VectorsError::Vector {
                    id,
                    path: path.to_owned(),
                    source,
                })?;
                vectors.in_scope.push(GroupedVector { group, vector });
            }
        }
        Ok(vectors)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Run,
    Archive,
    /// The vector passes its arguments without a subcommand.
    Check,
}

impl Group {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "safe_run" => Some(Group::Run),
            "safe_archive" => Some(Group::Archive),
            "safe_check" => Some(Group::Check),
            _ => None,
        }
    }
}

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
    // Named only because unknown fields are refused; they are for readers of the file.
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

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Platform::Unix => "unix",
            Platform::Windows => "windows",
        }
    }
}

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

#[cfg(test)]
mod tests {
    use counterproof_store::write::{Durability, write};
    use serde_json::json;

    use super::{Equivalence, Platform, Signal, *};

    fn read(document: &Value) -> Result<Vectors, VectorsError> {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("vectors.json");
        write(&path, document.to_string().as_bytes(), Durability::Cached).unwrap();
        Vectors::read(&path)
    }

    fn document(vector: &Value) -> Value {
        json!({"m0_contract_version": "v0.1.0", "vectors": {"safe_run": [vector], "preflight": [{"id": "p"}, {}]}})
    }

    fn minimal() -> Value {
        json!({"id": "a", "name": "A", "expected": {}})
    }

    #[test]
    fn groups_of_other_tools_are_out_of_scope() {
        let vectors = read(&document(&minimal())).unwrap();
        assert_eq!(vectors.contract, "v0.1.0");
        assert_eq!(vectors.in_scope.len(), 1);
        assert_eq!(vectors.in_scope[0].group, Group::Run);
        let out_of_scope = ["p", "without id"].map(|id| ("preflight".to_owned(), id.to_owned()));
        assert_eq!(vectors.out_of_scope, out_of_scope);
        assert!(vectors.only(&["b"]).in_scope.is_empty());
    }

    #[test]
    fn a_vector_is_parsed_with_all_of_its_fields() {
        let mut vector = minimal();
        vector["command"] = json!({"args": ["x"], "interrupt_signal": "HUP", "platform_filter": "unix", "stdin": "in"});
        vector["command_variants"] = json!([{"args": ["y"], "expected_file": "out"}]);
        vector["allowed_equivalences"] = json!(["line_endings"]);
        vector["expected"] = json!({"exit_code_oneOf": [1, 2], "exit_code_range": [3, 9], "log_content_absent": ["z"]});
        vector["golden"] = json!("a.json");
        let vectors = read(&document(&vector)).unwrap();
        let vector = &vectors.in_scope[0].vector;
        let command = vector.command.as_ref().unwrap();
        assert_eq!((command.interrupt_signal, command.platform_filter), (Some(Signal::Hup), Some(Platform::Unix)));
        assert_eq!(command.stdin.as_deref(), Some("in"));
        assert_eq!(vector.command_variants[0].expected_file, "out");
        assert_eq!(vector.allowed_equivalences, [Equivalence::LineEndings]);
        assert_eq!(vector.expected.exit_code_one_of, Some(vec![1, 2]));
        assert_eq!(vector.expected.exit_code_range, Some((3, 9)));
        assert_eq!(vector.golden.as_deref(), Some("a.json"));
    }

    #[test]
    fn an_unknown_field_is_an_error_that_names_the_vector() {
        for pointer in ["/surprise", "/expected/surprise", "/command/surprise", "/setup/surprise"] {
            let mut vector = minimal();
            vector["command"] = json!({});
            vector["setup"] = json!({});
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            vector.pointer_mut(parent).unwrap()[key] = json!(1);
            let error = read(&document(&vector)).unwrap_err();
            assert!(matches!(&error, VectorsError::Vector { id, .. } if id == "a"), "{pointer}: {error:?}");
        }
    }

    #[test]
    fn a_file_that_is_missing_or_not_a_document_is_an_error() {
        assert!(matches!(Vectors::read(Utf8Path::new("/absent.json")), Err(VectorsError::Read { .. })));
        for document in
            [json!([]), json!({"vectors": {}}), json!({"m0_contract_version": "v0.1.0", "vectors": {"a": 1}})]
        {
            assert!(matches!(read(&document), Err(VectorsError::Format { .. })), "{document}");
        }
    }
}
