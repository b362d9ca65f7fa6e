//! Messages about proposed actions.

use counterproof_artifact::ProposedAction;

use super::changes::changes;
use crate::diff::{ActionRow, EvidenceChange, Row};
use crate::values::text;

/// Characters of a tool's name.
const TOOL_LENGTH: usize = 60;

/// Describes a row of the aligned actions that differs.
pub fn action(row: &ActionRow, baseline: &[ProposedAction], new: &[ProposedAction]) -> String {
    match row.row {
        Row::Removed(index) => format!("{} no longer proposed", tool(&baseline[index])),
        Row::Added(index) => format!("{} newly proposed (risk {})", tool(&new[index]), new[index].risk_level),
        Row::Both { new: index, .. } => {
            let name = tool(&new[index]);
            match (row.changes.is_empty(), row.evidence) {
                (false, _) => format!("{name}: {}", changes(&row.changes)),
                (true, EvidenceChange::Lost) => format!("{name}: evidence lost"),
                (true, _) => format!("{name}: evidence changed"),
            }
        }
    }
}

fn tool(action: &ProposedAction) -> String {
    text::one_line(&action.tool_name, TOOL_LENGTH)
}
