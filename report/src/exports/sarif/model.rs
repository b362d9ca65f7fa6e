//! The objects and properties of SARIF 2.1.0 that this project writes. Doc comments name the section of the standard.
//!
//! Texts of messages are SARIF messages: [`Text::message`] escapes what would be a placeholder or a link.

use std::borrow::Cow;

use serde::Serialize;

/// A log with one run (3.13).
#[derive(Debug, Serialize)]
pub struct Log<'a> {
    /// The address of the JSON Schema.
    #[serde(rename = "$schema")]
    pub schema: &'static str,
    /// The version of the standard.
    pub version: &'static str,
    /// The run.
    pub runs: [Run<'a>; 1],
}

impl<'a> Log<'a> {
    /// A log with this run.
    pub const fn new(run: Run<'a>) -> Self {
        Self { schema: "https://json.schemastore.org/sarif-2.1.0.json", version: "2.1.0", runs: [run] }
    }
}

/// A run of a tool (3.14).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run<'a> {
    /// The tool.
    pub tool: Tool<'a>,
    /// The identity that separates these results from other results for the same commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automation_details: Option<Identity>,
    /// How the tool ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invocations: Vec<Invocation>,
    /// The unit of columns.
    pub column_kind: &'static str,
    /// The results.
    pub results: Vec<SarifResult<'a>>,
}

impl<'a> Run<'a> {
    /// A run of this program with these rules and results. Columns count Unicode characters.
    pub const fn new(rules: Vec<Rule<'a>>, results: Vec<SarifResult<'a>>) -> Self {
        let driver = Driver { name: "counterproof", semantic_version: env!("CARGO_PKG_VERSION"), rules };
        Self {
            tool: Tool { driver },
            automation_details: None,
            invocations: Vec::new(),
            column_kind: "unicodeCodePoints",
            results,
        }
    }
}

/// A tool (3.18).
#[derive(Debug, Serialize)]
pub struct Tool<'a> {
    /// The program.
    pub driver: Driver<'a>,
}

/// The program of a tool (3.19).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Driver<'a> {
    /// The name of the program.
    pub name: &'static str,
    /// The version of the program.
    pub semantic_version: &'static str,
    /// The rules that results refer to.
    pub rules: Vec<Rule<'a>>,
}

/// A rule (3.49).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule<'a> {
    /// The stable code.
    pub id: Cow<'a, str>,
    /// The meaning in one sentence.
    pub short_description: Text,
    /// The meaning in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_description: Option<Text>,
    /// The remedy.
    pub help: Text,
    /// The default level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_configuration: Option<Configuration>,
}

/// The default configuration of a rule (3.50).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Configuration {
    /// The default level.
    pub level: Level,
}

/// A message (3.11).
#[derive(Debug, Clone, Serialize)]
pub struct Text {
    /// The text on one line.
    pub text: String,
}

impl Text {
    /// A text as it is.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Any text as a message. Braces are doubled, because a single one starts a placeholder (3.11.5). Links are broken, because
    /// the text may come from an agent (3.11.6).
    pub fn message(text: &str) -> Self {
        Self::plain(text.replace('{', "{{").replace('}', "}}").replace("](", "] ("))
    }
}

/// The identity of a run (3.17).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Identity {
    /// The identity: parts separated by slashes.
    pub id: &'static str,
}

/// An invocation of the tool (3.20).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Invocation {
    /// Whether the tool finished.
    pub execution_successful: bool,
    /// Notes on the invocation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_execution_notifications: Vec<Notification>,
}

/// A note on an invocation (3.58).
#[derive(Debug, Serialize)]
pub struct Notification {
    /// The level.
    pub level: Level,
    /// The text.
    pub message: Text,
}

/// The level of a result or notification (3.27.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A serious problem.
    Error,
    /// A possible problem.
    Warning,
    /// Information.
    Note,
}

/// A result (3.27).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SarifResult<'a> {
    /// The id of the rule.
    pub rule_id: &'a str,
    /// The index of the rule in the rules of the driver.
    pub rule_index: usize,
    /// The level.
    pub level: Level,
    /// The message.
    pub message: Text,
    /// The location.
    pub locations: [Location<'a>; 1],
    /// The properties that identify the result across runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_fingerprints: Option<Fingerprints>,
}

/// A location (3.28).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Location<'a> {
    /// The file.
    pub physical_location: PhysicalLocation,
    /// The element within the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logical_locations: Option<[LogicalLocation<'a>; 1]>,
}

/// A location in a file (3.29).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PhysicalLocation {
    /// The file.
    pub artifact_location: ArtifactLocation,
    /// The part of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
}

/// The address of a file (3.4).
#[derive(Debug, Serialize)]
pub struct ArtifactLocation {
    /// The percent-encoded URI reference.
    pub uri: String,
}

/// A part of a file (3.30).
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Region {
    /// The line, counted from 1.
    pub start_line: usize,
    /// The column, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_column: Option<usize>,
}

/// An element within a file (3.33).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogicalLocation<'a> {
    /// The name of the element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// The name with the path to the element.
    pub fully_qualified_name: Cow<'a, str>,
    /// The kind of the element.
    pub kind: &'static str,
}

/// Values that identify a result across runs (3.27.17).
#[derive(Debug, Serialize)]
pub struct Fingerprints {
    /// The fingerprint that GitHub uses. Other tools derive it from the source line.
    #[serde(rename = "primaryLocationLineHash")]
    pub line: String,
    /// The digest of case, code and location.
    #[serde(rename = "counterproofCase/v1")]
    pub case: String,
}
