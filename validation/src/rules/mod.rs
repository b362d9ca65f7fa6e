//! The rules, grouped by the part of the contract that they check. Each works on JSON values and adds findings.

pub(crate) mod evaluation;
pub(crate) mod evidence;
pub(crate) mod failure;
pub(crate) mod hrefs;
pub(crate) mod labels;
pub(crate) mod manifest;
pub(crate) mod meta;
pub(crate) mod names;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod steps;
