//! The fields of a failed program: its exit code or signal, and its standard error output as an asset.

use counterproof_artifact::{AssetKind, Extra};
use counterproof_redaction::Applied;
use counterproof_safe_run::Ending;
use counterproof_store::write::WriteError;

use super::attempt_recorder::AttemptRecorder;
use super::saved_body::AttemptRef;
use crate::received::{Extent, ProgramEnd};

/// Returns the additional fields of the failure. Saves standard error as an asset unless it is empty.
pub(super) fn save(
    program: &ProgramEnd,
    recorder: &AttemptRecorder,
    AttemptRef { case_id, number, .. }: AttemptRef<'_>,
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
            Extent::Complete => recorder.redactor.bytes(&program.stderr, applied),
            Extent::Truncated => recorder.redactor.truncated_bytes(&program.stderr, applied),
        };
        let extension = if std::str::from_utf8(&bytes).is_ok() { "txt" } else { "bin" };
        let name = format!("{case_id}.attempt{number}.stderr.{extension}");
        let saved = recorder.run.write_asset(&name, AssetKind::Other, Some(case_id), &bytes)?;
        fields.insert("stderr_saved_to".to_owned(), saved.href.as_str().into());
    }
    Ok(fields)
}
