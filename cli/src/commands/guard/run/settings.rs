//! What the arguments mean: the identity of the run and the settings of its shims.

use counterproof_artifact::CaseId;
use counterproof_export::ledger::CASE_LABEL;
use counterproof_guard::agent_run::RunSettings;
use counterproof_guard::identity::{RUN_ID, RunIdentity, WORKLOAD, process_variable, workload_with_label};
use counterproof_ledger::location::LedgerLocation;

use super::command::Args;
use crate::command_error::CommandError;

/// Returns the settings of the run. Creates an id if none is stated.
pub(super) fn settings(args: &Args) -> Result<RunSettings, CommandError> {
    // Validates the ids as the shims do.
    let lookup = |name: &str| match name {
        RUN_ID => args.run.clone().or_else(|| process_variable(RUN_ID)),
        "SUB_AGENT_ID" => args.agent.clone(),
        "SUB_PRINCIPAL" => args.principal.clone(),
        _ => None,
    };
    let (identity, warnings) = RunIdentity::from_environment(lookup);
    if let Some(warning) = warnings.first() {
        return Err(CommandError::usage(warning.to_string()));
    }
    let ledger = args.settings.ledger()?.map(|ledger| match ledger {
        LedgerLocation::SqliteFile(path) => path.into_string(),
        LedgerLocation::PostgreSql(url) => url.expose().to_owned(),
    });
    let label = |case: &CaseId| {
        workload_with_label(
            process_variable(WORKLOAD).filter(|text| !text.is_empty()).as_deref(),
            CASE_LABEL,
            case.as_str(),
        )
    };
    let workload = args.case.as_ref().map(label).transpose();
    let workload = workload.map_err(|error| CommandError::usage(error).hint("correct or unset the variable"))?;
    Ok(RunSettings {
        run_id: identity.run_id,
        agent_id: args.agent.clone(),
        client: args.client.clone(),
        env: args.env.clone(),
        principal: args.principal.clone(),
        workload,
        policy: args.settings.policy()?.map(camino::Utf8PathBuf::into_string),
        ledger,
    })
}
