//! How a verdict and a risk look: a sign, a word and a class for the style sheet. Colour is never the only sign.

use counterproof_artifact::RiskLevel;
use counterproof_artifact::evaluation::Verdict;

/// A verdict, ready to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VerdictShown {
    /// The class of its colour, and the name of its rows.
    pub(super) class: &'static str,
    /// The sign beside the word.
    pub(super) sign: &'static str,
    /// The word.
    pub(super) word: &'static str,
}

/// A verdict as it is shown.
pub(super) const fn show(verdict: Verdict) -> VerdictShown {
    let (class, sign, word) = match verdict {
        Verdict::Invalid => ("invalid", "!", "invalid"),
        Verdict::Missing => ("missing", "−", "missing"),
        Verdict::Added => ("added", "+", "added"),
        Verdict::Broken => ("broken", "✗", "broken"),
        Verdict::Recovered => ("recovered", "✓", "recovered"),
        Verdict::StillBroken => ("still-broken", "✗", "still broken"),
        Verdict::Regressed => ("regressed", "✗", "regressed"),
        Verdict::Improved => ("improved", "✓", "improved"),
        Verdict::Changed => ("changed", "~", "changed"),
        Verdict::Noisy => ("noisy", "·", "noisy"),
        Verdict::Unchanged => ("unchanged", "=", "unchanged"),
    };
    VerdictShown { class, sign, word }
}

/// True where nothing moved, or no more than it moves by itself.
pub(super) const fn is_quiet(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Noisy | Verdict::Unchanged)
}

/// A stated risk in words; one that the agent does not state is nothing to show.
pub(super) fn risk(level: Option<RiskLevel>) -> Option<&'static str> {
    level.filter(|level| *level != RiskLevel::Unknown).map(RiskLevel::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_has_its_place_and_its_own_word() {
        let mut words: Vec<_> = Verdict::WORST_FIRST.iter().map(|verdict| show(*verdict).word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Verdict::ALL.len());
    }
}
