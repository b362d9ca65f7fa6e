//! The sign and the word of a verdict in exports, and the word for a risk. Colour is never the only sign.

use counterproof_artifact::RiskLevel;
use counterproof_artifact::evaluation::Verdict;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VerdictView {
    pub(crate) sign: &'static str,
    pub(crate) word: &'static str,
}

pub(crate) const fn show(verdict: Verdict) -> VerdictView {
    let (sign, word) = match verdict {
        Verdict::Invalid => ("!", "invalid"),
        Verdict::Missing => ("−", "missing"),
        Verdict::Added => ("+", "added"),
        Verdict::NotComparable => ("≠", "not comparable"),
        Verdict::Broken => ("✗", "broken"),
        Verdict::Recovered => ("✓", "recovered"),
        Verdict::StillBroken => ("✗", "still broken"),
        Verdict::Regressed => ("✗", "regressed"),
        Verdict::Improved => ("✓", "improved"),
        Verdict::Changed => ("~", "changed"),
        Verdict::Undecided => ("?", "undecided"),
        Verdict::Noisy => ("·", "noisy"),
        Verdict::Unchanged => ("=", "unchanged"),
    };
    VerdictView { sign, word }
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
