//! A contract as a document: its types, its JSON Schema, and its validation.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use counterproof_artifact::{CaseId, NameError};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub const CONTRACT_SCHEMA_SOURCE: &str = include_str!("../../schemas/contract.v1.schema.json");

/// Longest id in bytes. As a case id, it is also a file name.
const MAX_BYTES: usize = 120;

/// Characters of a segment other than ASCII letters and digits.
const PUNCTUATION: &str = "._-";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("the contract id is empty")]
    Empty,
    #[error("the contract id has {0} bytes; at most {MAX_BYTES} are allowed")]
    TooLong(usize),
    #[error(
        "the contract id contains {found:?} at byte {index}; use ASCII letters, digits, `.`, `_` and `-`, and `/` between segments"
    )]
    Character {
        found: char,
        /// Its byte offset.
        index: usize,
    },
    #[error("the contract id has an empty segment: write it without a `/` at its start or end, and without `//`")]
    EmptySegment,
    #[error("the segment `{0}` of the contract id does not start with a letter or a digit")]
    Start(String),
    #[error("the contract id cannot name files: {0}")]
    FileName(NameError),
    /// A segment that ends with a dot, which some systems drop.
    #[error("the segment `{0}` of the contract id ends with a dot")]
    End(String),
}

/// The id of a contract: segments separated by slashes, such as `shop/refund/001`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContractId(String);

impl ContractId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first segment, which is the project unless the contract names another.
    pub fn project(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    /// Returns a name for files of the contract: `~` replaces `/`, and no other contract has the same one.
    pub fn file_stem(&self) -> String {
        // `~` is not a character of ids, so two ids never share a file.
        self.0.replace('/', "~")
    }

    pub fn case_id(&self) -> Result<CaseId, NameError> {
        self.file_stem().parse()
    }
}

impl FromStr for ContractId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text.is_empty() {
            return Err(IdError::Empty);
        }
        if text.len() > MAX_BYTES {
            return Err(IdError::TooLong(text.len()));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || PUNCTUATION.contains(c) || c == '/';
        if let Some((index, found)) = text.char_indices().find(|&(_, c)| !allowed(c)) {
            return Err(IdError::Character { found, index });
        }
        for segment in text.split('/') {
            match segment.chars().next() {
                None => return Err(IdError::EmptySegment),
                // A leading dash looks like an option, and a leading dot hides a file or leaves the folder.
                Some(first) if !first.is_ascii_alphanumeric() => return Err(IdError::Start(segment.to_owned())),
                Some(_) if segment.ends_with('.') => return Err(IdError::End(segment.to_owned())),
                Some(_) => {}
            }
        }
        let id = Self(text.to_owned());
        // Checked last: `run` and names of devices are refused only as whole names, after all segments are valid.
        id.case_id().map_err(IdError::FileName)?;
        Ok(id)
    }
}

// Maps with ids as keys find the id of a line without a copy of it.
impl std::borrow::Borrow<str> for ContractId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ContractId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<ContractId> for String {
    fn from(id: ContractId) -> String {
        id.0
    }
}

impl fmt::Display for ContractId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One version of a contract, or its latest: `shop/refund/001@2`, `shop/refund/001`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContractKey {
    pub id: ContractId,
    /// The version. `None` means the latest.
    pub version: Option<NonZeroU32>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(transparent)]
    Id(#[from] IdError),
    #[error("`{0}` is not a version; write a number from 1, such as `shop/refund/001@2`")]
    Version(String),
}

impl FromStr for ContractKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        // `@` is not a character of ids, so the first one always begins the version.
        let Some((id, version)) = text.split_once('@') else {
            return Ok(Self { id: text.parse()?, version: None });
        };
        let version = version.parse().map_err(|_| KeyError::Version(version.to_owned()))?;
        Ok(Self { id: id.parse()?, version: Some(version) })
    }
}

impl fmt::Display for ContractKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "{}@{version}", self.id),
            None => write!(f, "{}", self.id),
        }
    }
}

/// What an agent gets, what it must produce, how that is verified, how it is undone, and what it needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contract {
    /// The id, the same in all versions.
    pub id: ContractId,
    /// Counted from 1.
    pub version: NonZeroU32,
    /// The time of creation, or its date, in ISO 8601.
    pub created_at: String,
    pub input: ContractInput,
    pub output: ContractOutput,
    pub verification: Verification,
    pub rollback: Rollback,
    /// Contracts that must be completed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Vec<ContractId>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<Resource>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ContractMetadata>,
    /// Fields of other tools, whose names begin with `x-`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What the agent receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContractInput {
    /// A name for the kind of input, such as `codebase_context`.
    #[serde(rename = "type")]
    pub input_type: String,
    pub data: Value,
    /// Limits that the agent must respect. Assertions read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Map<String, Value>>,
}

/// What the agent must produce.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContractOutput {
    /// A name for the kind of output, such as `code_change`.
    #[serde(rename = "type")]
    pub output_type: String,
    /// The shape of the agent's output: the short form, such as `{"files": "string[]"}`, or a JSON Schema.
    pub schema: Value,
    /// Files that must exist afterwards, relative to the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<String>>,
}

/// The executable check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// A command line for `sh -c`.
    pub command: String,
    /// The time limit of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// CEL expressions that must all be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assertions: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryConfig>,
}

/// Maximum further attempts of a check. A stored contract may have more, which are not made.
pub const MAX_RETRIES: u32 = 100;

/// Further attempts of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryConfig {
    /// The number of attempts after the first one.
    pub max: u32,
    pub delay_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RollbackStrategy {
    GitReset,
    RestoreSnapshot,
    Custom,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    pub strategy: RollbackStrategy,
    /// A command line for `sh -c`, for [`RollbackStrategy::Custom`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceType {
    Port,
    /// A name that one execution at a time may hold.
    Session,
    /// Paths that one execution at a time may change.
    FileLock,
    Env,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    #[serde(rename = "type")]
    pub resource_type: ResourceType,
    pub spec: Value,
}

/// Data for people and other tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractMetadata {
    pub project: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human_summary: Option<String>,
    /// Fields of other tools.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Returns the time of a `created_at`. A date without a time is its midnight in UTC.
pub(crate) fn creation_time(text: &str) -> Option<Timestamp> {
    let midnight = |date: Date| date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    // A time without a zone parses as a date too, and is ambiguous.
    let is_date = text.len() == DATE_LENGTH;
    text.parse().ok().or_else(|| text.parse().ok().filter(|_| is_date).and_then(midnight))
}

/// The length of `2026-02-02`.
const DATE_LENGTH: usize = 10;

impl Contract {
    pub fn dependencies(&self) -> &[ContractId] {
        self.dependencies.as_deref().unwrap_or_default()
    }

    pub fn resources(&self) -> &[Resource] {
        self.resources.as_deref().unwrap_or_default()
    }

    pub fn artifacts(&self) -> &[String] {
        self.output.artifacts.as_deref().unwrap_or_default()
    }

    /// Returns the project, or the first segment of the id.
    pub fn project(&self) -> &str {
        self.metadata.as_ref().map_or_else(|| self.id.project(), |metadata| &metadata.project)
    }

    /// Returns the summary for people, or the id.
    pub fn summary(&self) -> &str {
        let summary = self.metadata.as_ref().and_then(|metadata| metadata.human_summary.as_deref());
        summary.unwrap_or_else(|| self.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_segments_that_are_safe_in_files_and_shells() {
        for id in ["a", "shop/refund/001", "a.b/c-d/e_f", "0"] {
            assert_eq!(id.parse::<ContractId>().unwrap().as_str(), id);
        }
        for (id, error) in [
            ("", IdError::Empty),
            ("/a", IdError::EmptySegment),
            ("a//b", IdError::EmptySegment),
            ("a/", IdError::EmptySegment),
            ("a/../b", IdError::Start("..".into())),
            ("-a", IdError::Start("-a".into())),
            ("a./b", IdError::End("a.".into())),
            ("a@1", IdError::Character { found: '@', index: 1 }),
            ("a~b", IdError::Character { found: '~', index: 1 }),
            ("a b", IdError::Character { found: ' ', index: 1 }),
            ("run", IdError::FileName(NameError::Taken("run".into()))),
            ("nul.x/a", IdError::FileName(NameError::Device("nul.x~a".into()))),
        ] {
            assert_eq!(id.parse::<ContractId>(), Err(error), "{id:?}");
        }
        assert_eq!("x".repeat(121).parse::<ContractId>(), Err(IdError::TooLong(121)));
    }

    #[test]
    fn a_key_has_a_version_or_means_the_latest() {
        let key: ContractKey = "a/b@2".parse().unwrap();
        assert_eq!((key.version.unwrap().get(), key.to_string()), (2, "a/b@2".to_owned()));
        assert_eq!("a/b".parse::<ContractKey>().unwrap().version, None);
        for text in ["a@0", "a@", "a@x", "a@1@2", "a@-1", "a@4294967296"] {
            assert!(matches!(text.parse::<ContractKey>(), Err(KeyError::Version(_))), "{text}");
        }
    }

    #[test]
    fn different_contracts_have_different_cases() {
        let case = |id: &str| id.parse::<ContractId>().unwrap().case_id().unwrap();
        assert_eq!(case("shop/refund/001").as_str(), "shop~refund~001");
        assert_ne!(case("a/b"), case("a-b"));
    }
}
