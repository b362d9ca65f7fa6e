//! Lints a policy file.

use std::borrow::Cow;
use std::ops::Range;

use counterproof_validation::{Code, Finding, RuleFinding};

use super::code::LintCode;
use super::linting::Linting;
use super::rules::check;
use crate::policy::document::{PolicyFile, check_document};

/// What is wrong with a policy, in the order of the text.
#[derive(Debug)]
pub struct Linted {
    /// The errors. A policy with errors cannot be used.
    pub errors: Vec<Finding>,
    /// The warnings about the rules without errors.
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
    /// The part of the text that the pointer names, if the lint is about a part.
    pub(super) within: Option<Range<usize>>,
    pub(super) message: String,
    pub(super) expected: Cow<'static, str>,
}

/// Parses a policy, and returns its errors and what is probably wrong with it.
pub fn lint(file: &PolicyFile) -> Linted {
    let compiled = file.compile();
    if compiled.document.is_none() {
        return Linted { errors: compiled.findings, warnings: Vec::new() };
    }
    let mut lints = Vec::new();
    let checked = check_document(file, |document| {
        lints = check(&Linting::new(&compiled, document));
        // The remedy carries the index of the lint through the sort by position.
        lints.iter().enumerate().map(|(index, lint)| finding(lint, index)).collect()
    });
    let warning = |finding: Finding| {
        // The errors of the schema have remedies in words.
        let code = lints.get(finding.remedy.parse::<usize>().ok()?)?.code;
        Some(Warning { code, finding: Finding { remedy: code.remedy().to_owned(), ..finding } })
    };
    Linted { warnings: checked.findings.into_iter().filter_map(warning).collect(), errors: compiled.findings }
}

fn finding(lint: &Lint, index: usize) -> RuleFinding {
    let finding = RuleFinding::new(Code::WrongValue, &lint.pointer, &lint.message, &*lint.expected);
    let finding = finding.with_remedy(index.to_string());
    match &lint.within {
        Some(span) => finding.within(span.clone()),
        None => finding,
    }
}
