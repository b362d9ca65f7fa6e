//! Options of an agent: request fields in addition to the case, and the risk levels of its tools.

use std::collections::BTreeMap;

use counterproof_artifact::{Extra, RiskLevel};
use counterproof_cases::Input;
use counterproof_cases::glob;
use counterproof_redaction::{Applied, Redactor};
use serde_json::{Map, Value, json};

use crate::digest;

/// Request fields that the runner sets itself.
const RESERVED: [&str; 6] = ["model", "messages", "input", "instructions", "tools", "stream"];

/// Request fields of the OpenAI protocols in addition to the case. The native protocol ignores them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentOptions {
    /// The model name. `None` omits the field.
    pub model: Option<String>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The tools that the agent may call, in the format of the protocol. `input.tools` of a case replaces them.
    pub tools: Option<Vec<Value>>,
    /// Additional request fields, such as `temperature`.
    pub request: Map<String, Value>,
    /// The risk levels of the tools.
    pub risk: RiskTable,
}

/// A request field that cannot be configured because the runner sets it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the request field `{0}` is set by the runner and cannot be configured")]
pub struct ReservedField(String);

impl AgentOptions {
    /// Sets the additional request fields.
    pub fn set_request(&mut self, fields: Map<String, Value>) -> Result<(), ReservedField> {
        if let Some(field) = fields.keys().find(|field| RESERVED.contains(&field.as_str())) {
            return Err(ReservedField(field.clone()));
        }
        self.request = fields;
        Ok(())
    }

    /// Returns a request body: the common fields, the fields of the case, and the tools.
    pub(super) fn request(&self, input: &Input, case_fields: Map<String, Value>) -> Result<Vec<u8>, serde_json::Error> {
        let mut request = self.common_fields();
        request.extend(case_fields);
        if let Some(tools) = self.tools(input) {
            request.insert("tools".to_owned(), tools);
        }
        serde_json::to_vec(&request)
    }

    /// Returns the model and the additional fields, with streaming off.
    fn common_fields(&self) -> Map<String, Value> {
        let mut request = Map::new();
        if let Some(model) = &self.model {
            request.insert("model".to_owned(), model.as_str().into());
        }
        request.extend(self.request.clone());
        request.insert("stream".to_owned(), false.into());
        request
    }

    /// Returns the options as `run.json` records them. Long values are recorded as digests of their redacted form.
    pub(crate) fn document(&self, redactor: &Redactor) -> Extra {
        let digest = |mut value: Value| {
            redactor.json(&mut value, &mut Applied::default());
            Value::from(digest::of_value(value).to_string())
        };
        let request = (!self.request.is_empty()).then(|| Value::Object(self.request.clone()));
        let risk = (!self.risk.0.is_empty()).then(|| json!(self.risk.0));
        let fields = [
            ("model", self.model.as_deref().map(Value::from)),
            ("system_prompt_sha256", self.system_prompt.as_deref().map(|text| digest(text.into()))),
            ("tools_sha256", self.tools.clone().map(|tools| digest(tools.into()))),
            ("request_sha256", request.map(digest)),
            ("risk", risk),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Returns the tools for a case. Its own tools replace the configured ones.
    fn tools(&self, input: &Input) -> Option<Value> {
        input.extra.get("tools").cloned().or_else(|| self.tools.clone().map(Value::Array))
    }
}

/// Risk levels by tool name. `*` in a name matches any characters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RiskTable(BTreeMap<String, RiskLevel>);

impl FromIterator<(String, RiskLevel)> for RiskTable {
    fn from_iter<I: IntoIterator<Item = (String, RiskLevel)>>(rows: I) -> Self {
        Self(rows.into_iter().collect())
    }
}

impl RiskTable {
    /// Returns the level of a tool: by exact name, then by the longest matching pattern, then `unknown`.
    pub fn level(&self, tool: &str) -> RiskLevel {
        if let Some(level) = self.0.get(tool) {
            return *level;
        }
        let matching = self.0.iter().filter(|(pattern, _)| glob::fits(pattern, tool));
        matching.max_by_key(|(pattern, _)| pattern.len()).map_or(RiskLevel::Unknown, |(_, level)| *level)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_exact_name_precedes_patterns_and_a_long_pattern_precedes_a_short_one() {
        let rows = [("*", RiskLevel::Low), ("issue_*", RiskLevel::High), ("issue_note", RiskLevel::Medium)];
        let table: RiskTable = rows.into_iter().map(|(name, level)| (name.to_owned(), level)).collect();
        assert_eq!(table.level("issue_note"), RiskLevel::Medium);
        assert_eq!(table.level("issue_refund"), RiskLevel::High);
        assert_eq!(table.level("lookup"), RiskLevel::Low);
        assert_eq!(RiskTable::default().level("lookup"), RiskLevel::Unknown);
    }

    #[test]
    fn fields_of_the_runner_cannot_be_configured() {
        let mut options = AgentOptions::default();
        let fields = |value: Value| value.as_object().cloned().unwrap();
        assert!(options.set_request(fields(json!({"stream": true}))).is_err());
        options.set_request(fields(json!({"temperature": 0}))).unwrap();
        assert_eq!(Value::Object(options.common_fields()), json!({"temperature": 0, "stream": false}));
    }
}
