//! Which cases get a page of their own.

use counterproof_artifact::evaluation::Verdict;

use super::view::verdict;

/// Which cases get a page of their own. The index lists every case and links to the pages that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageSelection {
    /// Every case.
    #[default]
    All,
    /// All cases except those that are unchanged or noisy.
    Changed,
    /// No case.
    None,
}

impl PageSelection {
    /// Returns whether a case with this verdict gets a page.
    pub const fn includes(self, verdict: Verdict) -> bool {
        match self {
            PageSelection::All => true,
            PageSelection::Changed => !verdict::is_quiet(verdict),
            PageSelection::None => false,
        }
    }
}
