//! Checks what the schema cannot express, and compiles a policy.

use std::collections::HashMap;

use counterproof_artifact::canonical_json::canonical_hash;
use counterproof_artifact::pointer::child;
use counterproof_ledger::event::{AgentClient, PolicyRef, WorkingEnvironment};
use counterproof_validation::{Code, RuleFinding, nearest};
use serde_json::{Map, Value, json};

use super::types::{OneOrMany, PolicyDocument, RuleDocument, SelectorsDocument};
use crate::policy::model::{
    Defaults, LabelSelector, NamePatternsBuilder, Policy, Rule, RuleId, Selectors, WorkloadSelectors,
};
use crate::policy::responses::DenyCodes;

/// Compiles a document, and collects what is wrong with it.
#[derive(Debug, Default)]
pub(super) struct Compiler {
    pub(super) server_names: NamePatternsBuilder,
    pub(super) tool_names: NamePatternsBuilder,
    pub(super) findings: Vec<RuleFinding>,
    rules: Vec<(usize, Rule)>,
    policy: Option<Policy>,
}

impl Compiler {
    /// Compiles a document, and returns what is wrong with it. Parts that violate the schema are left to it.
    pub(super) fn compile(&mut self, document: &Value) -> Vec<RuleFinding> {
        self.compile_rules(document);
        if let Some(selectors) = document.get("selectors") {
            self.check_names(selectors, "env", &WorkingEnvironment::ALL.map(WorkingEnvironment::name));
            self.check_names(selectors, "client", &AgentClient::ALL.map(AgentClient::name));
        }
        if let Some(codes) = document.pointer("/responses/codes") {
            self.check_codes(codes);
        }
        match serde_json::from_value::<PolicyDocument>(document.clone()) {
            Ok(header) if self.findings.is_empty() => self.assemble(header, document),
            _ => {}
        }
        std::mem::take(&mut self.findings)
    }

    /// Returns the policy, if there were no findings, and the rules that could be compiled, with their indexes.
    pub(super) fn finish(self) -> (Option<Policy>, Vec<(usize, Rule)>) {
        (self.policy, self.rules)
    }

    fn compile_rules(&mut self, document: &Value) {
        let rules = document.get("rules").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut first_uses: HashMap<&str, usize> = HashMap::new();
        for (index, value) in rules.iter().enumerate() {
            let pointer = format!("/rules/{index}");
            if let Some(id) = value["rule_id"].as_str() {
                self.check_id(id, &pointer);
                if let Some(first) = first_uses.get(id) {
                    let message = format!("the rule id `{id}` is already used by rule {}", first + 1);
                    let id = child(&pointer, "rule_id");
                    let finding = RuleFinding::new(Code::WrongValue, id, message, "an id for each rule");
                    self.findings.push(finding.with_remedy("rename one of the two rules"));
                }
                first_uses.entry(id).or_insert(index);
            }
            // The schema reports rules of another shape.
            if let Ok(rule) = serde_json::from_value::<RuleDocument>(value.clone())
                && let Some(rule) = self.compile_rule(rule, &pointer)
            {
                self.rules.push((index, rule));
            }
        }
    }

    fn check_id(&mut self, id: &str, pointer: &str) {
        if !id.is_empty() && RuleId::new(id).is_none() {
            let id = child(pointer, "rule_id");
            let finding = RuleFinding::new(Code::WrongValue, id, "the rule id is blank", "an id that can be read");
            self.findings.push(finding.with_remedy("write an id that names the rule"));
        }
    }

    /// Checks a selector whose values are known. A misspelt value would match no run.
    fn check_names(&mut self, selectors: &Value, field: &str, known: &[&str]) {
        let list = selectors.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, value) in list.iter().enumerate() {
            let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { continue };
            if !known.contains(&text.to_lowercase().as_str()) {
                let near = nearest(text, known);
                let meant = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                let pointer = format!("/selectors/{field}/{index}");
                let expected = format!("one of `{}`", known.join("`, `"));
                let message = format!("no run has this value{meant}");
                let finding = RuleFinding::new(Code::WrongValue, pointer, message, expected);
                self.findings.push(finding.with_any_remedy(near.map(|near| format!("write `{near}`"))));
            }
        }
    }

    /// Checks the codes of errors. A client must be able to distinguish them from each other and from those of the protocol.
    fn check_codes(&mut self, codes: &Value) {
        let Ok(codes) = serde_json::from_value::<DenyCodes>(codes.clone()) else { return };
        let named = codes.named();
        for (index, (name, code)) in named.iter().enumerate() {
            let pointer = format!("/responses/codes/{name}");
            if DenyCodes::RESERVED.contains(code) {
                let message = format!("JSON-RPC defines the code {code}");
                let finding =
                    RuleFinding::new(Code::WrongValue, pointer, message, "a code that JSON-RPC does not define");
                self.findings.push(finding.with_remedy("choose another code"));
            } else if let Some((other, _)) = named[..index].iter().find(|(_, other)| other == code) {
                let message = format!("the code {code} of `{name}` is also that of `{other}`");
                let finding = RuleFinding::new(Code::WrongValue, pointer, message, "four different codes");
                self.findings.push(finding.with_remedy("choose another code"));
            }
        }
    }

    fn assemble(&mut self, header: PolicyDocument, document: &Value) {
        let (Ok(server_names), Ok(tool_names)) = (self.server_names.build(), self.tool_names.build()) else {
            let message = "the patterns of all rules are too large together";
            let finding = RuleFinding::new(Code::WrongValue, "/rules", message, "fewer or simpler patterns");
            return self.findings.push(finding.with_remedy("remove or simplify patterns"));
        };
        self.policy = Some(Policy {
            reference: PolicyRef {
                policy_id: header.policy_id,
                policy_version: header.policy_version.or(header.version).unwrap_or_default(),
                policy_hash: hash(document),
            },
            mode: header.mode,
            defaults: Defaults {
                decision_on_error: header.defaults.decision_on_error,
                fail_open_read_tools: header.defaults.fail_open_read_tools,
            },
            responses: header.responses,
            selectors: selectors(header.selectors),
            rules: self.rules.iter().map(|(_, rule)| rule.clone()).collect(),
            server_names,
            tool_names,
        });
    }
}

/// Hashes the parts of a document that decide. Parts that are missing count as empty.
fn hash(document: &Value) -> String {
    let field = |name: &str| document.get(name).cloned();
    let object = || Value::Object(Map::new());
    let content = json!({
        "policy_id": field("policy_id"),
        "policy_version": field("policy_version").or_else(|| field("version")),
        "mode": field("mode"),
        "defaults": field("defaults").unwrap_or_else(object),
        "selectors": field("selectors").unwrap_or_else(object),
        "rules": field("rules").unwrap_or_else(|| json!([])),
    });
    canonical_hash(&content).to_string()
}

fn selectors(document: SelectorsDocument) -> Selectors {
    let workload = document.workload;
    let label = |(name, values): (String, OneOrMany)| match values {
        OneOrMany::One(value) => (name, LabelSelector(vec![value])),
        OneOrMany::Many(values) => (name, LabelSelector(values)),
    };
    Selectors {
        env: document.env,
        agent_id: document.agent_id,
        client: document.client,
        workload: WorkloadSelectors {
            namespace: workload.namespace,
            service_account: workload.service_account,
            repo: workload.repo,
            branch: workload.branch,
            labels: workload.labels.into_iter().map(label).collect(),
        },
    }
}
