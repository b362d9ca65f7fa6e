//! The control room as lines of text.

use std::fmt::Write as _;

use counterproof_artifact::{group_digits, harmless, one_line};

use super::item::{millis_between, show};
use super::{Attention, Changes, ControlRoom, Item, Tier, TierList, VerificationResult, VerificationSummary};

/// Longest text of a line, in characters.
const MAX_TEXT: usize = 160;

impl ControlRoom {
    /// Returns the control room as text, with at most `listed` contracts of each tier. Invisible characters and the
    /// starts of workflow commands are escaped.
    pub fn to_text(&self, listed: usize) -> String {
        let mut text = String::new();
        for list in &self.tiers {
            let _ = write!(text, "{} ({})", list.tier.title(), group_digits(list.count));
            let shown = shown(list, listed);
            let omission = list.omission(shown.len());
            let _ = writeln!(text, "{}{omission}", if omission.is_empty() { "" } else { ": " });
            for item in shown {
                self.write_item(&mut text, list.tier, item);
            }
        }
        let _ = writeln!(text, "Cancelled ({})", group_digits(self.cancelled));
        // Once for the whole text: summaries and reasons were written by other programs.
        harmless(&text)
    }

    fn write_item(&self, text: &mut String, tier: Tier, item: &Item) {
        let (sign, words) = (item.state.sign(), item.state.words());
        let _ = writeln!(text, "  {sign} {}@{}  {words}{}", item.id, item.version, self.age(item));
        if item.summary != item.id.as_str() {
            let _ = writeln!(text, "      {}", one_line(&item.summary, MAX_TEXT));
        }
        if let Some(attention) = &item.attention {
            let _ = writeln!(text, "      {}", one_line(&attention.message, MAX_TEXT));
        }
        let facts = facts(item);
        if !facts.is_empty() {
            let _ = writeln!(text, "      {}", facts.join("; "));
        }
        if let Some(rollback) = &item.rollback {
            let _ = match (rollback.restore_command(), &rollback.way_back) {
                // Not shortened: a command must be whole.
                (Some(command), _) => writeln!(text, "      {command}  (restores what the rollback removed)"),
                (None, Some(way_back)) => writeln!(text, "      to restore: {}", one_line(way_back, MAX_TEXT)),
                (None, None) => Ok(()),
            };
        }
        if tier == Tier::NeedsDecision {
            for command in &item.commands {
                let _ = writeln!(text, "      {}  ({})", command.command, command.effect);
            }
        }
    }

    fn age(&self, item: &Item) -> String {
        item.since.map_or_else(String::new, |since| format!(" for {}", show(millis_between(since, self.generated_at))))
    }
}

/// The first contracts of a tier, or the last ones of the completed.
fn shown(list: &TierList, listed: usize) -> &[Item] {
    let omitted = list.items.len().saturating_sub(listed);
    match list.tier {
        Tier::Completed => &list.items[omitted..],
        _ => &list.items[..list.items.len() - omitted],
    }
}

fn facts(item: &Item) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(item.verification.as_ref().map(|it| verification(it, item.attention.as_ref())));
    facts.extend(item.changes.map(changes));
    facts.extend(item.duration_ms.map(|millis| format!("worked {}", show(millis))));
    facts.extend(item.owner.as_ref().map(|owner| format!("owner {}", one_line(owner, MAX_TEXT))));
    // The id usually begins with the project, which need not be repeated.
    if !item.id.as_str().starts_with(&format!("{}/", item.project)) {
        facts.push(format!("project {}", one_line(&item.project, MAX_TEXT)));
    }
    facts
}

fn verification(summary: &VerificationSummary, attention: Option<&Attention>) -> String {
    let word = match summary.result {
        VerificationResult::Passed => "PASSED",
        VerificationResult::Failed => "FAILED",
        VerificationResult::Unknown => "unknown",
    };
    match &summary.reason {
        Some(reason) if !attention.is_some_and(|it| it.message.starts_with(&**reason)) => {
            format!("verification {word}: {}", one_line(reason, MAX_TEXT))
        }
        _ => format!("verification {word}"),
    }
}

/// Returns changes such as `3 files +10 −2`.
pub fn changes(changes: Changes) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), group_digits);
    let files = if changes.files == Some(1) { "file" } else { "files" };
    format!("{} {files} +{} −{}", number(changes.files), number(changes.insertions), number(changes.deletions))
}
