//! The plan of a run: what would happen, and what would prevent it.

use std::fmt::Write as _;

use counterproof_artifact::Exit;
use counterproof_contracts::Store;
use counterproof_contracts::execution::RunSettings;
use counterproof_contracts::run_many::{Selected, preview};
use serde_json::{Value, json};

use super::failure::Failure;
use super::project::Project;
use crate::streams::Streams;

/// Checks everything that can be checked without running a command, and prints the plan.
pub(super) fn print(
    store: &Store,
    selected: &[Selected],
    settings: &RunSettings,
    project: &Project,
    streams: &mut Streams,
) -> Result<Exit, Failure> {
    let previews: Vec<_> = selected.iter().map(|it| preview(store, it, settings)).collect::<Result<_, _>>()?;
    let is_possible = previews.iter().all(|preview| preview.problems.is_empty());
    let rows = selected.iter().zip(&previews).map(|(selected, preview)| {
        json!({
            "id": selected.contract.id, "version": selected.contract.version, "state": selected.state,
            "after": selected.after, "steps": preview.steps, "problems": preview.problems,
        })
    });
    let document = json!({ "possible": is_possible, "contracts": rows.collect::<Vec<Value>>() });
    project.print(streams, &document, || {
        let mut text = String::new();
        for (number, (selected, preview)) in selected.iter().zip(&previews).enumerate() {
            let (id, version, state) = (&selected.contract.id, selected.contract.version, selected.state);
            let _ = writeln!(text, "{}. {id}@{version} ({state})", number + 1);
            for step in &preview.steps {
                let _ = writeln!(text, "   {step}");
            }
            for problem in &preview.problems {
                let _ = writeln!(text, "   problem: {problem}");
            }
        }
        text + if is_possible { "nothing was run or changed" } else { "the run would fail; nothing was run or changed" }
    })?;
    Ok(if is_possible { Exit::Done } else { Exit::Findings })
}
