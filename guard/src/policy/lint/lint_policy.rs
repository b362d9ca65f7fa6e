//! Lints a policy file.

use counterproof_validation::{Finding, RuleFinding};
use serde_json::Value;

use super::code::LintCode;
use super::rules::check;
use crate::policy::document::{InvalidPolicy, PolicyFile, check_document};
use crate::policy::model::Policy;

/// A valid policy, and its warnings in the order of the text.
#[derive(Debug)]
pub struct Linted {
    /// The policy.
    pub policy: Policy,
    /// The warnings.
    pub warnings: Vec<Warning>,
}

/// A warning at one place of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The kind of warning.
    pub code: LintCode,
    /// Its place and its texts. The code of the finding is not used.
    pub finding: Finding,
}

/// What a check found.
#[derive(Debug)]
pub(super) struct Lint {
    pub(super) code: LintCode,
    pub(super) pointer: String,
    pub(super) message: String,
    pub(super) expected: &'static str,
}

/// Parses a policy, and returns what is probably wrong with it.
pub fn lint(file: &PolicyFile) -> Result<Linted, InvalidPolicy> {
    let (policy, _) = file.parse()?;
    let mut lints = Vec::new();
    let checked = check_document(file, |document| {
        lints = check(&policy, document);
        // The remedy carries the index of the lint through the sort by position.
        lints.iter().enumerate().map(|(index, lint)| finding(lint, index)).collect()
    });
    let warning = |finding: Finding| {
        let code = lints.get(finding.remedy.parse::<usize>().ok()?)?.code;
        Some(Warning { code, finding: Finding { remedy: code.remedy().to_owned(), ..finding } })
    };
    Ok(Linted { warnings: checked.findings.into_iter().filter_map(warning).collect(), policy })
}

fn finding(lint: &Lint, index: usize) -> RuleFinding {
    let finding =
        RuleFinding::new(counterproof_validation::Code::WrongValue, &lint.pointer, &lint.message, lint.expected);
    RuleFinding { remedy: Some(index.to_string()), ..finding }
}

/// Returns the rules of a document as they are written.
pub(super) fn written_rules(document: &Value) -> &[Value] {
    document.get("rules").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
