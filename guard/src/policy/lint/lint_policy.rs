//! Lints a policy file. The list of warnings is here, and docs/policy.md is compared with it.

use std::borrow::Cow;
use std::ops::Range;

use counterproof_ledger::event::Mode;
use counterproof_validation::{Code, Finding, RuleFinding};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::rules::check;
use crate::policy::document::{CompiledPolicy, PolicyFile, check_document};
use crate::policy::model::{OnError, Rule};

/// What is wrong with a policy, in the order of the text.
#[derive(Debug)]
pub struct LintReport {
    /// The errors. A policy with errors cannot be used.
    pub errors: Vec<Finding>,
    /// The warnings about the rules without errors.
    pub warnings: Vec<Warning>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub code: LintCode,
    /// Its place and its texts. The code of the finding is not used.
    pub finding: Finding,
}

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
pub fn lint(file: &PolicyFile) -> LintReport {
    let compiled = file.compile();
    // Without a document there is nothing to lint, and the parse error says all.
    if compiled.document.is_none() {
        return LintReport { errors: compiled.findings, warnings: Vec::new() };
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
    LintReport { warnings: checked.findings.into_iter().filter_map(warning).collect(), errors: compiled.findings }
}

fn finding(lint: &Lint, index: usize) -> RuleFinding {
    let finding = RuleFinding::new(Code::WrongValue, &lint.pointer, &lint.message, &*lint.expected);
    let finding = finding.with_remedy(index.to_string());
    match &lint.within {
        Some(span) => finding.within(span.clone()),
        None => finding,
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LintedRule<'p> {
    pub(super) index: usize,
    pub(super) rule: &'p Rule,
    pub(super) value: &'p Value,
}

#[derive(Debug)]
pub(super) struct Linting<'p> {
    pub(super) document: &'p Value,
    /// `None` if the mode has an error.
    pub(super) mode: Option<Mode>,
    pub(super) on_error: OnError,
    pub(super) rules: Vec<LintedRule<'p>>,
    /// The indexes of rules with errors, of which little is known.
    pub(super) invalid: Vec<usize>,
}

impl<'p> Linting<'p> {
    pub(super) fn new(compiled: &'p CompiledPolicy, document: &'p Value) -> Self {
        let written = document.get("rules").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // A rule with an error is not linted: a warning about half a rule would mislead.
        let is_valid = |index: usize| {
            let pointer = format!("/rules/{index}");
            let is_about =
                |found: &str| found.strip_prefix(&pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            !compiled.findings.iter().any(|finding| is_about(&finding.pointer))
        };
        let (mut rules, mut invalid) = (Vec::new(), Vec::new());
        for (index, value) in written.iter().enumerate() {
            match compiled.rules.iter().find(|(at, _)| *at == index) {
                Some((_, rule)) if is_valid(index) => rules.push(LintedRule { index, rule, value }),
                _ => invalid.push(index),
            }
        }
        rules.retain(|written| written.rule.is_enabled);
        let mode = read(document.get("mode"));
        let on_error = read(document.pointer("/defaults/decision_on_error")).unwrap_or_default();
        Self { document, mode, on_error, rules, invalid }
    }

    pub(super) fn has_invalid(&self, mut indexes: impl Iterator<Item = usize>) -> bool {
        !self.invalid.is_empty() && indexes.any(|index| self.invalid.contains(&index))
    }
}

fn read<T: DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    serde_json::from_value(value?.clone()).ok()
}

macro_rules! codes {
    ($($variant:ident $code:literal $meaning:literal $remedy:literal)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LintCode {
            $(#[doc = $meaning] $variant,)*
        }

        impl LintCode {
            /// All warnings.
            pub const ALL: &[LintCode] = &[$(LintCode::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(LintCode::$variant => $code,)* }
            }

            pub const fn meaning(self) -> &'static str {
                match self { $(LintCode::$variant => $meaning,)* }
            }

            pub const fn remedy(self) -> &'static str {
                match self { $(LintCode::$variant => $remedy,)* }
            }
        }
    };
}

codes! {
    ShadowedRule "shadowed-rule"
        "The rule never decides, because an earlier rule decides about all of its calls."
        "move the rule up, or remove it"
    AllowsEverything "allows-everything"
        "A rule without conditions allows every call, so that no later deny or budget rule decides."
        "move the rule to the end, or add a `match`"
    UnknownRiskClass "unknown-risk-class"
        "No tag rule above the rule adds the risk class, so that the rule never matches."
        "add a tag rule above, or correct the risk class"
    UnanchoredRegex "unanchored-regex"
        "A regular expression with a branch that is not anchored by `^` and `$` matches parts of names."
        "write the expression as `^(?:…)$`"
    UnguardedArgument "unguarded-argument"
        "An expression in CEL reads an argument that a call may not have, so that the rule is undecided for such calls."
        "test that the call has the argument, such as with `has(…) && …`"
    NeverAllows "never-allows"
        "One call costs more than the limit, so that the rule refuses every call."
        "raise the limit, or lower the cost"
    UnusedField "unused-field"
        "The action of the rule does not use the field."
        "remove the field, or change the action"
    VersionsDiffer "versions-differ"
        "The fields `version` and `policy_version` differ, and only `policy_version` is used."
        "remove one of the two"
    OnlyObserves "only-observes"
        "The mode `observe` enforces no rule."
        "set the mode to `guardrails` or `control` when the observed decisions are right"
    NoRules "no-rules"
        "The policy has no rule that is enabled, so that it allows every call."
        "add rules, or use the mode `observe`"
}
