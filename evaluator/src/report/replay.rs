//! The command that sends a case's request again. It works in the report's folder, which holds all that it needs but the
//! command of an agent that is a program.

use counterproof_artifact::Side;

use super::case_page::CaseView;
use super::names;
use super::writer::ReportError;

/// The command for the side that is under test, or for the other one where only that has a request; empty where none was kept.
pub(super) fn command(view: &CaseView<'_>) -> Result<String, ReportError> {
    for side in [Side::New, Side::Baseline] {
        let Some(request) = view.artifact(side).envelope().and_then(|case| case.request.as_ref()) else { continue };
        // A copy under another name is not found again from the artifact.
        if names::copy_name(request) != request.as_str() || view.files(side).asset(request.as_str())?.href.is_none() {
            continue;
        }
        let id = &view.case.row.case_id;
        let artifact = view.files(side).artifact_path(view.report.pages.stem(id));
        // A run keeps no arguments of a program, which may be secrets, so who asks again names it in full.
        let program = if view.files(side).asks_program() { " --agent-cmd '…'" } else { "" };
        return Ok(format!("counterproof replay {}{program}", quoted(&artifact)));
    }
    Ok(String::new())
}

/// A path as a shell takes it. Ids may hold brackets and the like, and never a quote.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '+' | '=' | '@' | ',');
    if path.chars().all(plain) { path.to_owned() } else { format!("'{path}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_is_quoted() {
        assert_eq!(quoted("artifacts/new/refund_001.json"), "artifacts/new/refund_001.json");
        assert_eq!(quoted("artifacts/new/t[a]~(x).json"), "'artifacts/new/t[a]~(x).json'");
    }
}
