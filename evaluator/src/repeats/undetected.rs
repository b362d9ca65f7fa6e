//! Differences of a pair of answers that have no place. Values at places are compared by hash, which cannot see a number with a
//! tolerance or an id that may be renamed; such differences are only visible in a pair.

use counterproof_artifact::Sides;

use crate::diff::Differences;
use crate::diff::actions::ActionRow;
use crate::diff::align::Row;
use crate::diff::events::EventRow;
use crate::diff::json::{JsonChange, JsonChanges};
use crate::diff::output::{self, OutputChange};
use crate::diff::steps::EventKind;
use crate::load::LoadedAnswer;
use crate::rules::{self, Rules, Scope, Subject};

/// Whether the pair differs in a value that has the same hash on both sides.
pub(crate) fn is_undetected_in_pair(found: &Differences, sides: Sides<&LoadedAnswer>, rules: &Rules) -> bool {
    if rules.is_empty() {
        return false;
    }
    found.events.iter().any(|row| in_event(row, sides.new, rules))
        || found.actions.iter().any(|row| in_action(row, sides.new, rules))
        || in_output(&found.output, sides, rules)
}

/// Like [`is_undetected_in_pair`], for two events.
pub(super) fn in_event(row: &EventRow, new: &LoadedAnswer, rules: &Rules) -> bool {
    let Row::Both { new: index, .. } = row.row else { return false };
    let scope = rules.scope(EventKind::new(new, index).subject());
    among(&row.changes, &format!("/events/{index}"), &scope)
}

/// Like [`is_undetected_in_pair`], for two actions.
pub(super) fn in_action(row: &ActionRow, new: &LoadedAnswer, rules: &Rules) -> bool {
    let Row::Both { new: index, .. } = row.row else { return false };
    let subject = Subject { event: None, tool: Some(new.answer.proposed_actions[index].tool_name.as_str()) };
    among(&row.changes, &format!("/proposed_actions/{index}"), &rules.scope(subject))
}

/// Like [`is_undetected_in_pair`], for the final outputs.
pub(super) fn in_output(change: &OutputChange, Sides { baseline, new }: Sides<&LoadedAnswer>, rules: &Rules) -> bool {
    let scope = output::scope(rules);
    match change {
        OutputChange::Json(changes) => among(changes, output::POINTER, &scope),
        OutputChange::Text(_) => {
            let seen =
                |side: &LoadedAnswer| rules::coarse_view(&output::value(&side.answer.final_output.content), &scope);
            !scope.is_empty() && seen(baseline) == seen(new)
        }
        OutputChange::Same | OutputChange::Form => false,
    }
}

/// Whether one of the changes is undetected. `root` is the prefix of their pointers in new, to which `scope` belongs.
fn among(changes: &JsonChanges, root: &str, scope: &Scope<'_>) -> bool {
    !scope.is_empty() && changes.iter().any(|change| is_undetected(change, root, scope))
}

// Equal coarse views mean that the hashes at this place are equal, although the values are not.
fn is_undetected(change: &JsonChange, root: &str, scope: &Scope<'_>) -> bool {
    let (Some(old), Some(new)) = (&change.baseline, &change.new) else { return false };
    let Some(path) = new.pointer.strip_prefix(root) else { return false };
    let key = |segment: &str| segment.replace("~1", "/").replace("~0", "~");
    let here = path.split('/').skip(1).fold(scope.clone(), |scope, segment| scope.below(&key(segment)));
    rules::coarse_view(&old.value, &here) == rules::coarse_view(&new.value, &here)
}
