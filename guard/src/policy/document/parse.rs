//! Parses and checks a policy file.

use std::io;
use std::sync::LazyLock;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use counterproof_validation::{
    CheckedDocument, Code, DocumentFormat, DocumentSchema, DocumentText, Finding, RuleFinding,
};
use serde_json::Value;

use super::compile::Compiler;
use crate::policy::model::{Policy, Rule};

/// Largest size of a policy file.
pub const MAX_POLICY_BYTES: u64 = 1 << 20;

/// The JSON Schema of a policy.
pub const POLICY_SCHEMA_SOURCE: &str = include_str!("../../../../schemas/guard-policy.v1.schema.json");

static SCHEMA: LazyLock<DocumentSchema> = LazyLock::new(compile_schema);

#[expect(clippy::expect_used, reason = "the schema is part of the program, and the tests compile it")]
fn compile_schema() -> DocumentSchema {
    let source: Value = serde_json::from_str(POLICY_SCHEMA_SOURCE).expect("the embedded schema is JSON");
    DocumentSchema::compile("guard-policy.v1", &source).expect("the embedded schema is valid")
}

/// A policy with errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", summary(.findings))]
pub struct InvalidPolicy {
    /// All errors in the order of the text, at least one.
    pub findings: Vec<Finding>,
}

/// Why a policy cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadPolicyError {
    /// The file cannot be read.
    #[error("cannot read the policy `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file has errors.
    #[error(transparent)]
    Invalid(#[from] InvalidPolicy),
}

/// The valid parts of a policy file, and its errors.
#[derive(Debug, Default)]
pub(in crate::policy) struct Compiled {
    /// The document; `None` if it cannot be parsed.
    pub(in crate::policy) document: Option<Value>,
    /// The policy, if the compiler found no errors.
    pub(in crate::policy) policy: Option<Policy>,
    /// The rules that could be compiled, with their indexes. A condition with an error is missing in its rule.
    pub(in crate::policy) rules: Vec<(usize, Rule)>,
    /// The errors.
    pub(in crate::policy) findings: Vec<Finding>,
}

/// A policy file that was read.
#[derive(Debug)]
pub struct PolicyFile {
    /// The file, as findings name it.
    pub path: Utf8PathBuf,
    pub bytes: Vec<u8>,
}

impl PolicyFile {
    /// Reads a policy file. It may be a pipe.
    pub fn read(path: &Utf8Path) -> Result<Self, LoadPolicyError> {
        // A larger file is read as well, because a finding is clearer than an error of the system.
        let bytes = read_file::read_argument(path, read_file::MAX_SMALL_BYTES);
        let bytes = bytes.map_err(|source| LoadPolicyError::Read { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// Parses the file, and returns the policy with its document.
    pub fn parse(&self) -> Result<(Policy, Value), InvalidPolicy> {
        match self.compile() {
            Compiled { document: Some(document), policy: Some(policy), findings, .. } if findings.is_empty() => {
                Ok((policy, document))
            }
            Compiled { findings, .. } => Err(InvalidPolicy { findings }),
        }
    }

    /// Compiles the parts of the file that are valid.
    pub(in crate::policy) fn compile(&self) -> Compiled {
        let Self { path, bytes } = self;
        if bytes.len() as u64 > MAX_POLICY_BYTES {
            return Compiled { findings: vec![too_large(path, bytes.len())], ..Compiled::default() };
        }
        let mut compiler = Compiler::default();
        let mut checked = check_document(self, |value| compiler.compile(value));
        if let Some(finding) = checked.value.as_ref().and_then(|value| not_a_policy(value, &checked.findings)) {
            checked.findings = vec![finding];
        }
        let (policy, rules) = compiler.finish();
        Compiled { document: checked.value, policy, rules, findings: checked.findings }
    }
}

impl Policy {
    /// Reads a policy file. It may be a pipe.
    pub fn load(path: &Utf8Path) -> Result<Self, LoadPolicyError> {
        Ok(PolicyFile::read(path)?.parse()?.0)
    }

    /// Parses a policy: JSON if the first byte is `{`, otherwise YAML. Findings name the file `file`.
    pub fn parse(file: &Utf8Path, bytes: &[u8]) -> Result<Self, InvalidPolicy> {
        Ok(PolicyFile { path: file.to_owned(), bytes: bytes.to_owned() }.parse()?.0)
    }
}

/// Checks a document against the schema and further rules.
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

/// Returns the format of a policy: JSON if the first byte is `{`, otherwise YAML.
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
