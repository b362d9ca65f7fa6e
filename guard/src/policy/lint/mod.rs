//! Warnings about policies: valid rules that do not do what their author probably means.

mod cel_guards;
mod code;
mod coverage;
mod lint_policy;
mod linting;
mod regex_reach;
mod rules;

pub use code::LintCode;
pub use lint_policy::{Linted, Warning, lint};
