//! Warnings about valid policies: rules that do not do what their author probably means.

mod cel_fields;
mod code;
mod coverage;
mod lint_policy;
mod regex_reach;
mod rules;

pub use code::LintCode;
pub use lint_policy::{Linted, Warning, lint};
