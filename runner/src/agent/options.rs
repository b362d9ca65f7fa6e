//! What a project says of its agent: what goes into every request beside the case, and how risky its tools are.

use std::collections::BTreeMap;

use counterproof_artifact::{Extra, RiskLevel};
use counterproof_cases::Input;
use counterproof_cases::glob;
use counterproof_redaction::{Applied, Redactor};
use serde_json::{Map, Value, json};

use crate::digest;

/// Fields of a request that the runner fills in itself.
const RESERVED: [&str; 6] = ["model", "messages", "input", "instructions", "tools", "stream"];

/// What goes into every request of the OpenAI forms beside the case. The native protocol has no use for it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentOptions {
    /// The model's name; left out of the request where there is none.
    pub model: Option<String>,
    /// What the agent is told before all else.
    pub system_prompt: Option<String>,
    /// The tools that the agent may call, as the protocol writes them; a case's own `input.tools` take their place.
    pub tools: Option<Vec<Value>>,
    /// Further fields of the request, such as `temperature`.
    pub request: Map<String, Value>,
    /// How risky the tools are.
    pub risk: RiskTable,
}

/// A field that cannot be set, because the runner fills it in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the field `{0}` of the request belongs to the runner")]
pub struct ReservedField(String);

impl AgentOptions {
    /// Sets the further fields of the request.
    pub fn set_request(&mut self, fields: Map<String, Value>) -> Result<(), ReservedField> {
        if let Some(field) = fields.keys().find(|field| RESERVED.contains(&field.as_str())) {
            return Err(ReservedField(field.clone()));
        }
        self.request = fields;
        Ok(())
    }

    /// A request: what every request starts with, then the question, and the tools for it.
    pub(super) fn request(&self, input: &Input, question: Map<String, Value>) -> Result<Vec<u8>, serde_json::Error> {
        let mut request = self.start();
        request.extend(question);
        if let Some(tools) = self.tools(input) {
            request.insert("tools".to_owned(), tools);
        }
        serde_json::to_vec(&request)
    }

    /// The model, the further fields, and no stream.
    fn start(&self) -> Map<String, Value> {
        let mut request = Map::new();
        if let Some(model) = &self.model {
            request.insert("model".to_owned(), model.as_str().into());
        }
        request.extend(self.request.clone());
        request.insert("stream".to_owned(), false.into());
        request
    }

    /// What `run.json` says of the options. What may be long is there by its digest, made without the secrets in it.
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

    /// The tools for a case, whose own come first.
    fn tools(&self, input: &Input) -> Option<Value> {
        input.extra.get("tools").cloned().or_else(|| self.tools.clone().map(Value::Array))
    }
}

/// How risky tools are, by name. A name may hold `*` for any characters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RiskTable(BTreeMap<String, RiskLevel>);

impl FromIterator<(String, RiskLevel)> for RiskTable {
    fn from_iter<I: IntoIterator<Item = (String, RiskLevel)>>(rows: I) -> Self {
        Self(rows.into_iter().collect())
    }
}

impl RiskTable {
    /// The level of a tool: that of its own name, else of the longest pattern that fits, else `unknown`.
    pub fn level(&self, tool: &str) -> RiskLevel {
        if let Some(level) = self.0.get(tool) {
            return *level;
        }
        let fitting = self.0.iter().filter(|(pattern, _)| glob::fits(pattern, tool));
        fitting.max_by_key(|(pattern, _)| pattern.len()).map_or(RiskLevel::Unknown, |(_, level)| *level)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_wins_over_patterns_and_a_long_pattern_over_a_short_one() {
        let rows = [("*", RiskLevel::Low), ("issue_*", RiskLevel::High), ("issue_note", RiskLevel::Medium)];
        let table: RiskTable = rows.into_iter().map(|(name, level)| (name.to_owned(), level)).collect();
        assert_eq!(table.level("issue_note"), RiskLevel::Medium);
        assert_eq!(table.level("issue_refund"), RiskLevel::High);
        assert_eq!(table.level("lookup"), RiskLevel::Low);
        assert_eq!(RiskTable::default().level("lookup"), RiskLevel::Unknown);
    }

    #[test]
    fn what_the_runner_fills_in_cannot_be_set() {
        let mut options = AgentOptions::default();
        let fields = |value: Value| value.as_object().cloned().unwrap();
        assert!(options.set_request(fields(json!({"stream": true}))).is_err());
        options.set_request(fields(json!({"temperature": 0}))).unwrap();
        assert_eq!(Value::Object(options.start()), json!({"temperature": 0, "stream": false}));
    }
}
