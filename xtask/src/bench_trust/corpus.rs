//! Severity, flags, first divergences and causes on a corpus of real runs, compared with its labels.

use camino::Utf8Path;

use crate::step::Failure;

/// Measures the program on the corpus in this folder.
#[expect(clippy::unnecessary_wraps, reason = "the section is a skeleton")]
pub(super) fn run(_program: &Utf8Path, _corpus: &Utf8Path) -> Result<(), Failure> {
    Ok(())
}
