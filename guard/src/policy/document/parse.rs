//! Reads a policy file, checks it against the schema and further rules, and compiles it.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, LazyLock};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::canonical::canonical_hash;
use counterproof_artifact::pointer::child;
use counterproof_ledger::event::{AgentClient, PolicyRef, WorkingEnvironment};
use counterproof_store::read_file;
use counterproof_validation::{
    CheckedDocument, Code, DocumentFormat, DocumentSchema, DocumentText, Finding, RuleFinding, nearest,
};
use serde_json::{Map, Value, json};

use super::types::{PolicyDocument, RuleDocument};
use crate::policy::model::{DenyCodes, NamePatternsBuilder, Policy, Rule, RuleId};

pub const MAX_POLICY_BYTES: u64 = 1 << 20;
pub const POLICY_SCHEMA_SOURCE: &str = include_str!("../../../../schemas/guard-policy.v1.schema.json");

static SCHEMA: LazyLock<DocumentSchema> = LazyLock::new(|| embedded_schema("guard-policy.v1", POLICY_SCHEMA_SOURCE));

#[expect(clippy::expect_used, reason = "the schema is part of the program, and the tests compile it")]
pub(in crate::policy) fn embedded_schema(name: &str, source: &str) -> DocumentSchema {
    let source: Value = serde_json::from_str(source).expect("the embedded schema is JSON");
    DocumentSchema::compile(name, &source).expect("the embedded schema is valid")
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", summary(.findings))]
pub struct InvalidPolicy {
    pub findings: Vec<Finding>,
}

#[derive(Debug, thiserror::Error)]
pub enum LoadPolicyError {
    #[error("cannot read the policy `{path}`")]
    Read { path: Utf8PathBuf, source: io::Error },
    #[error(transparent)]
    Invalid(#[from] InvalidPolicy),
}

#[derive(Debug, Default)]
pub(in crate::policy) struct CompiledPolicy {
    pub(in crate::policy) document: Option<Value>,
    pub(in crate::policy) policy: Option<Policy>,
    /// The rules that could be compiled, with their indexes. A condition with an error is missing in its rule.
    pub(in crate::policy) rules: Vec<(usize, Rule)>,
    pub(in crate::policy) findings: Vec<Finding>,
}

#[derive(Debug)]
pub struct PolicyFile {
    pub path: Utf8PathBuf,
    pub bytes: Vec<u8>,
}

impl PolicyFile {
    /// Reads a policy file. It may be a pipe.
    pub fn read(path: &Utf8Path) -> Result<Self, LoadPolicyError> {
        // A file above `MAX_POLICY_BYTES` is read as well, because a finding is clearer than an error of the system.
        let bytes = read_file::read_argument(path, read_file::MAX_SMALL_BYTES);
        let bytes = bytes.map_err(|source| LoadPolicyError::Read { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    pub fn parse(&self) -> Result<(Policy, Value), InvalidPolicy> {
        match self.compile() {
            CompiledPolicy { document: Some(document), policy: Some(policy), findings, .. } if findings.is_empty() => {
                Ok((policy, document))
            }
            CompiledPolicy { findings, .. } => Err(InvalidPolicy { findings }),
        }
    }

    pub(in crate::policy) fn compile(&self) -> CompiledPolicy {
        let Self { path, bytes } = self;
        if bytes.len() as u64 > MAX_POLICY_BYTES {
            return CompiledPolicy { findings: vec![too_large(path, bytes.len())], ..CompiledPolicy::default() };
        }
        // The rules are compiled even if the schema finds errors, so that one run reports all of them.
        let mut compiler = Compiler::default();
        let mut checked = check_document(self, |value| compiler.compile(value));
        // A file of another kind has one error, and not one for each missing field.
        if let Some(finding) = checked.value.as_ref().and_then(|value| not_a_policy(value, &checked.findings)) {
            checked.findings = vec![finding];
        }
        let (policy, rules) = compiler.finish();
        CompiledPolicy { document: checked.value, policy, rules, findings: checked.findings }
    }
}

impl Policy {
    /// Reads a policy file. It may be a pipe.
    pub fn load(path: &Utf8Path) -> Result<Self, LoadPolicyError> {
        Ok(PolicyFile::read(path)?.parse()?.0)
    }

    /// Compiles a document that has the form of [`Policy::document`].
    pub fn from_document(document: &Value) -> Result<Self, InvalidPolicy> {
        if document.is_null() {
            return Ok(Self::observe_only());
        }
        Self::parse("policy".into(), document.to_string().as_bytes())
    }

    /// Parses a policy: JSON if the first byte is `{`, otherwise YAML. Findings name the file `file`.
    pub fn parse(file: &Utf8Path, bytes: &[u8]) -> Result<Self, InvalidPolicy> {
        Ok(PolicyFile { path: file.to_owned(), bytes: bytes.to_owned() }.parse()?.0)
    }
}

pub(in crate::policy) fn check_document(
    file: &PolicyFile,
    rules: impl FnOnce(&Value) -> Vec<RuleFinding>,
) -> CheckedDocument {
    let text = DocumentText { file: &file.path, bytes: &file.bytes, first_line: 1 };
    let mut checked = SCHEMA.check_as(format(&file.bytes), text, rules);
    for finding in checked.findings.iter_mut().filter(|finding| finding.code == Code::EmptyFile) {
        "write the document, or name another file".clone_into(&mut finding.remedy);
    }
    checked
}

pub(in crate::policy) fn format(bytes: &[u8]) -> DocumentFormat {
    if bytes.first() == Some(&b'{') { DocumentFormat::Json } else { DocumentFormat::Yaml }
}

/// Returns one finding in place of many if a document has none of the fields of a policy.
fn not_a_policy(document: &Value, findings: &[Finding]) -> Option<Finding> {
    let fields = document.as_object().filter(|fields| !fields.is_empty())?;
    if ["policy_id", "mode", "rules"].into_iter().any(|name| fields.contains_key(name)) {
        return None;
    }
    let (what, remedy) = if fields.contains_key("tests") {
        ("a file of tests", "run `counterproof guard policy test POLICY TESTS` with the policy and this file")
    } else {
        ("no policy", "pass the policy, or add the fields")
    };
    let message = format!("the document is {what}: it has neither `policy_id` nor `mode` nor `rules`");
    let expected = "a policy, with `policy_id`, `version`, `mode` and `rules`".to_owned();
    // A missing field is reported at the start of the document.
    let first = findings.iter().find(|finding| finding.code == Code::MissingField)?.clone();
    Some(Finding { message, expected, remedy: remedy.to_owned(), ..first })
}

fn too_large(file: &Utf8Path, bytes: usize) -> Finding {
    Finding {
        code: Code::WrongValue,
        file: file.to_owned(),
        pointer: String::new(),
        position: None,
        excerpt: None,
        message: format!("the policy has {bytes} bytes"),
        expected: format!("at most {MAX_POLICY_BYTES} bytes"),
        remedy: "remove rules, or shorten lists".to_owned(),
    }
}

fn summary(findings: &[Finding]) -> String {
    let Some(first) = findings.first() else { return "the policy is invalid".to_owned() };
    let position = first.position.map(|at| format!(":{}:{}", at.line, at.column)).unwrap_or_default();
    let more = findings.len() - 1;
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    format!("{}{position}: {} (expected {}){more}", first.file, first.message, first.expected)
}

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
        // Only a document without findings becomes a policy: a rule whose condition has an error would match more calls.
        match serde_json::from_value::<PolicyDocument>(document.clone()) {
            Ok(header) if self.findings.is_empty() => self.assemble(header, document),
            _ => {}
        }
        std::mem::take(&mut self.findings)
    }

    pub(super) fn finish(self) -> (Option<Policy>, Vec<(usize, Rule)>) {
        (self.policy, self.rules)
    }

    fn compile_rules(&mut self, document: &Value) {
        let rules = document.get("rules").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut first_uses: HashMap<&str, usize> = HashMap::new();
        // One by one, so that the errors of all rules are found.
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

    fn check_names(&mut self, selectors: &Value, field: &str, known: &[&str]) {
        // A misspelt value would match no run.
        let list = selectors.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, value) in list.iter().enumerate() {
            let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { continue };
            // The schema allows any text, because it ignores case here.
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

    fn check_codes(&mut self, codes: &Value) {
        // A client must be able to distinguish the codes from each other and from those of the protocol.
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
                let message = format!("the code {code} of `{name}` is also the code of `{other}`");
                let finding = RuleFinding::new(Code::WrongValue, pointer, message, "four different codes");
                self.findings.push(finding.with_remedy("choose another code"));
            }
        }
    }

    fn assemble(&mut self, header: PolicyDocument, document: &Value) {
        // Each pattern is small enough; together they may still exceed the limit of one set.
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
            document: Arc::new(document.clone()),
            mode: header.mode,
            defaults: header.defaults,
            responses: header.responses,
            selectors: header.selectors,
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
    // Only what decides: a changed description or code of an answer is the same policy to those who compare runs.
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
