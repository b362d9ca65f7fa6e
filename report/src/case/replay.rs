//! The command that sends the request of a case again. It runs in the report folder, which contains everything it needs,
//! except for the command of an agent that is a program.

use counterproof_artifact::Side;

use super::context::CaseContext;
use crate::files::copy_name;

/// The replay command for new, or for baseline if only baseline has a recorded request; empty if neither has one.
pub(crate) fn command(context: &CaseContext<'_>) -> String {
    for side in [Side::New, Side::Baseline] {
        let Some(request) = context.artifact(side).envelope().and_then(|case| case.request.as_ref()) else { continue };
        // `replay` finds the request through the artifact, so the copy must have the recorded name.
        if copy_name(request) != request.as_str() || context.asset(side, request.as_str()).href.is_none() {
            continue;
        }
        let files = context.files(side);
        let artifact = files.artifact_path(context.site.pages.stem(&context.case.row.case_id));
        // A run does not record the arguments of a program, because they may be secrets.
        let program = if files.uses_program() { " --agent-cmd '…'" } else { "" };
        return format!("counterproof replay {}{program}", shell_words::quote(&artifact));
    }
    String::new()
}
