//! Severity, flags, first divergences and causes on a corpus of real runs, compared with its rewards and labels.
//!
//! The corpus is a folder with a folder for each pair (`runs/baseline/*`, `runs/new/*`, `cases/truth.json`) and `labels.json`.

mod labels;
mod measure;
mod pair;

pub(super) use measure::run;
