//! What a program that failed leaves behind beside its output: how it ended, and what it wrote to its standard error.

use counterproof_artifact::{AssetKind, Extra};
use counterproof_redaction::{Applied, Redactor};
use counterproof_safe_run::Ending;
use counterproof_store::RunWriter;
use counterproof_store::write::WriteError;

use crate::process::agent_process::Ended;
use crate::record::failed_body::Whose;
use crate::response::body_sink::Extent;

/// The fields of the failure; standard error is kept as an asset, where there is any.
pub(crate) fn of_program(
    program: &Ended,
    run: &RunWriter,
    redactor: &Redactor,
    Whose { case_id, attempt, .. }: Whose<'_>,
    applied: &mut Applied,
) -> Result<Extra, WriteError> {
    let mut fields = Extra::new();
    match program.ending {
        Some(Ending::Exited(code)) => drop(fields.insert("exit_code".to_owned(), code.into())),
        Some(Ending::Killed(signal)) => drop(fields.insert("signal".to_owned(), signal.into())),
        None => {}
    }
    if !program.stderr.is_empty() {
        let bytes = match program.stderr_extent {
            Extent::Whole => redactor.bytes(&program.stderr, applied),
            Extent::Cut => redactor.cut_bytes(&program.stderr, applied),
        };
        let extension = if std::str::from_utf8(&bytes).is_ok() { "txt" } else { "bin" };
        let name = format!("{case_id}.attempt{attempt}.stderr.{extension}");
        let saved = run.write_asset(&name, AssetKind::Other, Some(case_id), &bytes)?;
        fields.insert("stderr_saved_to".to_owned(), saved.href.as_str().into());
    }
    Ok(fields)
}
