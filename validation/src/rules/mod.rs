//! The rules, grouped by the part of the contract that they check. Each works on JSON values and adds findings.

pub(crate) mod assets;
pub(crate) mod case;
pub(crate) mod names;
pub(crate) mod run;
