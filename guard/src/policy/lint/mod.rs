//! Warnings about policies: valid rules that do not do what their author probably means.

mod lint_policy;
mod reach;

pub use lint_policy::{LintCode, LintReport, Warning, lint};
