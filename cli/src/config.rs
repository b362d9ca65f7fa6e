//! `counterproof.toml`: the settings of a project, as opposed to those of one command.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{RiskLevel, Sides};
use counterproof_cases::CaseSpec;
use counterproof_evaluator::{
    Expectations, GateRules, Request, RuleTables, Rules, SideRuns, SignalSettings, Thresholds,
};
use counterproof_store::read_file;
use counterproof_validation::Position;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::command_error::CommandError;
use crate::document_errors::render_excerpt;

/// The configuration file that is read from the working folder by default.
const DEFAULT_PATH: &str = "counterproof.toml";

/// The tables of `counterproof.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The rules of the gate: the allowed number of cases per verdict.
    pub(crate) gate: GateRules,
    /// The thresholds for comparisons with several runs per side.
    pub(crate) statistics: Thresholds,
    /// Request fields that are the same for all cases.
    pub(crate) agent: AgentConfig,
    pub(crate) risk: BTreeMap<String, RiskLevel>,
    pub(crate) signals: SignalSettings,
    pub(crate) secrets: Secrets,
    compare: CompareConfig,
    /// The compiled rules of comparison.
    #[serde(skip)]
    pub(crate) rules: Rules,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CompareConfig {
    rule: RuleTables,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Secrets {
    /// Environment variables that hold secrets. Variables that are not set are ignored.
    pub(crate) env: Vec<String>,
}

/// The table `[agent]`: request fields of the OpenAI protocols, and what is known about the agent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentConfig {
    /// Whether the agent does the same whenever it is asked the same.
    pub(crate) deterministic: bool,
    pub(crate) model: Option<String>,
    pub(crate) system_prompt: Option<String>,
    /// The tools that the agent may call, in the form that the protocol defines.
    pub(crate) tools: Option<Vec<Value>>,
    /// Additional request fields.
    pub(crate) request: Map<String, Value>,
}

impl Config {
    /// Reads the named file, or the default file if it exists.
    pub(crate) fn load(named: Option<&Utf8Path>) -> Result<Self, CommandError> {
        let path = named.map_or_else(|| Utf8PathBuf::from(DEFAULT_PATH), Utf8Path::to_owned);
        // Only a file that a person names may be a pipe.
        let read = if named.is_some() { read_file::read_text_argument } else { read_file::read_text };
        let text = match read(&path, read_file::MAX_SMALL_BYTES) {
            Ok(text) => text,
            // The default file is optional. A file that is named must exist.
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(CommandError::io(format!("failed to read `{path}`: {error}"))),
        };
        Self::parse(&text).map_err(|error| {
            CommandError::usage(error.describe(&path, &text)).hint("see docs/configuration.md for all settings")
        })
    }

    /// A comparison under these settings.
    pub(crate) fn request<'c>(
        &self,
        cases: &'c [CaseSpec],
        sides: Sides<SideRuns>,
    ) -> Result<Request<'c>, CommandError> {
        Ok(Request {
            baseline: sides.baseline,
            new: sides.new,
            cases,
            expectations: Expectations::compile(cases).map_err(CommandError::usage)?,
            rules: self.rules.clone(),
            limits: self.gate.clone(),
            thresholds: self.statistics.clone(),
            is_deterministic: self.agent.deterministic,
            signals: self.signals.clone(),
        })
    }

    fn parse(text: &str) -> Result<Self, InvalidConfig> {
        let mut config: Self = toml::from_str(text)
            .map_err(|error| InvalidConfig { message: error.message().to_owned(), span: error.span() })?;
        // The rules know the line of an error, but not its bytes.
        config.rules = std::mem::take(&mut config.compare.rule).compile(text).map_err(|error| InvalidConfig {
            span: Some(line_span(text, error.line)),
            message: error.problem.to_string(),
        })?;
        Ok(config)
    }
}

#[derive(Debug)]
struct InvalidConfig {
    message: String,
    /// The byte range of the error, if known.
    span: Option<Range<usize>>,
}

impl InvalidConfig {
    /// Formats the error with file, line, column and a source excerpt.
    fn describe(self, path: &Utf8Path, text: &str) -> String {
        let Some(span) = self.span else { return format!("{path}: {}", self.message) };
        let before = text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        // In characters, as editors count.
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let excerpt = render_excerpt(text, span, Position { line, column });
        format!("{path}:{line}:{column}: {}\n{excerpt}", self.message)
    }
}

/// Returns the byte range of a line, counted from 1.
fn line_span(text: &str, line: usize) -> Range<usize> {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let length = text.get(start..).and_then(|rest| rest.lines().next()).map_or(0, str::len);
    start..start + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configurations_in_the_docs_are_valid() {
        for docs in [include_str!("../../docs/configuration.md"), include_str!("../../docs/protocols.md")] {
            for block in docs.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
                Config::parse(block).unwrap_or_else(|error| panic!("{error:?}"));
            }
        }
    }
}
