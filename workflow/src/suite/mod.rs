//! Test commands of repositories: how they are found, run and read.
//!
//! ```text
//! folder ─▶ detect ─▶ Commands ─▶ shell: one command line ─▶ read: TestReport ─▶ verdict: target, new failures, added tests
//!                                                              tamper: the target test's file against the base
//! ```
//!
//! Readers are pure: they take lines and return a report, and recognise a format by its output, so a command may be a wrapper.

mod commands;
mod detect;
mod helpers;
mod read;
mod report;
mod shell;
mod tamper;
mod target;
mod test_files;
mod test_line;
mod verdict;

pub use commands::{Commands, Overrides, Runner};
pub use detect::detect;
pub use helpers::controls_tests;
pub use read::{Reader, read};
pub use report::{Format, Problem, TestReport, Verdict};
pub use shell::{Finished, Shell, ShellError, without_access};
pub use tamper::{has_tests, tampered};
pub use target::{Target, TargetError};
pub use test_line::files_with_tests;
pub use verdict::{TargetVerdict, new_failures, target_verdict, target_verdict_after, tests_added};
