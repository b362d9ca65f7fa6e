//! The evaluator as its callers see it: run folders in, a report out.

mod links;
mod report;
mod runs;
