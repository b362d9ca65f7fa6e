//! The sign, word and CSS class of a verdict, and the word for a risk. Colour is never the only sign.

use counterproof_artifact::RiskLevel;
use counterproof_artifact::evaluation::Verdict;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VerdictView {
    /// The CSS class, also used in file names and filters.
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) word: &'static str,
}

pub(crate) const fn show(verdict: Verdict) -> VerdictView {
    let (class, sign, word) = match verdict {
        Verdict::Invalid => ("invalid", "!", "invalid"),
        Verdict::Missing => ("missing", "−", "missing"),
        Verdict::Added => ("added", "+", "added"),
        Verdict::NotComparable => ("not-comparable", "≠", "not comparable"),
        Verdict::Broken => ("broken", "✗", "broken"),
        Verdict::Recovered => ("recovered", "✓", "recovered"),
        Verdict::StillBroken => ("still-broken", "✗", "still broken"),
        Verdict::Regressed => ("regressed", "✗", "regressed"),
        Verdict::Improved => ("improved", "✓", "improved"),
        Verdict::Changed => ("changed", "~", "changed"),
        Verdict::Undecided => ("undecided", "?", "undecided"),
        Verdict::Noisy => ("noisy", "·", "noisy"),
        Verdict::Unchanged => ("unchanged", "=", "unchanged"),
    };
    VerdictView { class, sign, word }
}

pub(crate) const fn is_quiet(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Noisy | Verdict::Unchanged)
}

/// The word for a risk level; `None` for an unknown one.
pub(crate) fn risk(level: Option<RiskLevel>) -> Option<&'static str> {
    level.filter(|level| *level != RiskLevel::Unknown).map(RiskLevel::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_has_its_own_word() {
        let mut words: Vec<_> = Verdict::WORST_FIRST.iter().map(|verdict| show(*verdict).word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Verdict::ALL.len());
    }
}
