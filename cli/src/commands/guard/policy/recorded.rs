//! `counterproof guard policy test --events`: decides about recorded calls again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use camino::Utf8Path;
use counterproof_artifact::{Exit, harmless, one_line};
use counterproof_guard::policy::{DryRun, DryRunDifference, ObservedCalls, Policy, dry_run};
use counterproof_ledger::event::{Action, ObservedDecision};

use super::test::read;
use crate::command_error::CommandError;
use crate::json_text::to_json;
use crate::streams::Streams;

/// Calls that are listed for each kind of difference.
const MAX_LISTED: usize = 5;

/// Runs the command.
pub(super) fn run(
    policy: &Arc<Policy>,
    path: &Utf8Path,
    is_json: bool,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let found = dry_run(policy, &read(path, "check that the path exists and is readable")?);
    if found.calls_compared == 0 {
        return Err(nothing_compared(&found, path));
    }
    if is_json {
        streams.print_document(&to_json(&found))?;
    } else {
        streams.print_document(&harmless(&text(&found, path)))?;
    }
    Ok(if found.differences.is_empty() && found.problems.is_empty() { Exit::Done } else { Exit::Findings })
}

/// A comparison of nothing must not pass.
fn nothing_compared(found: &DryRun, path: &Utf8Path) -> CommandError {
    let what = if found.calls == 0 { "tool call" } else { "decision about a tool call" };
    let line = found.problems.first();
    let line = line.map(|problem| format!("; line {} is not an event: {}", problem.line, problem.message));
    CommandError::usage(format!("`{path}` has no {what}{}", line.unwrap_or_default()))
        .hint("pass events that the guard recorded: the file of `counterproof guard shim --events`, or the output of `counterproof ledger export`")
}

fn text(found: &DryRun, path: &Utf8Path) -> String {
    let mut text = String::new();
    let mut groups: BTreeMap<(String, String), Vec<&DryRunDifference>> = BTreeMap::new();
    for difference in &found.differences {
        let observed = if difference.is_observed && difference.before.action != Action::Allow {
            ", allowed by the mode `observe`"
        } else {
            ""
        };
        let before = format!("{}{observed}", decided(&difference.before));
        groups.entry((before, decided(&difference.after))).or_default().push(difference);
    }
    for ((before, after), calls) in &groups {
        let _ = writeln!(text, "{}: recorded {before}; this policy {after}", count(calls.len() as u64));
        for call in calls.iter().take(MAX_LISTED) {
            let tool = one_line(&format!("{}/{}", call.server_name, call.tool_name), 60);
            let (run, id) = (one_line(&call.run_id, 40), one_line(call.call_id.as_str(), 40));
            let _ = writeln!(text, "  {}  {tool}  run {run}  call {id}", call.ts);
        }
        if calls.len() > MAX_LISTED {
            let _ = writeln!(text, "  and {} more", calls.len() - MAX_LISTED);
        }
    }
    for problem in found.problems.iter().take(MAX_LISTED) {
        let _ = writeln!(text, "{path}:{}: not an event: {}", problem.line, problem.message);
    }
    if found.problems.len() > MAX_LISTED {
        let _ = writeln!(text, "{} more lines are not events", found.problems.len() - MAX_LISTED);
    }
    if found.calls_without_arguments > 0 {
        let calls = count(found.calls_without_arguments);
        let _ = writeln!(text, "note: the arguments of {calls} are not recorded; conditions on them are undecided");
    }
    if found.calls_compared < found.calls {
        let calls = count(found.calls - found.calls_compared);
        let _ = writeln!(text, "note: the decisions about {calls} are not recorded and not compared");
    }
    let ObservedCalls { calls, refused_before, refused_after } = found.observed;
    if calls > 0 {
        let _ = writeln!(
            text,
            "note: {} recorded in the mode `observe`, which refuses nothing; the recorded rules would have refused \
             {refused_before}, and this policy would refuse {refused_after}",
            if calls == 1 { "1 call was".to_owned() } else { format!("{calls} calls were") }
        );
    }
    let _ =
        writeln!(text, "{} of {} would be decided differently", found.differences.len(), count(found.calls_compared));
    text
}

fn decided(decision: &ObservedDecision) -> String {
    let by = decision.rule_id.as_deref().map(|id| format!(" by rule `{}`", one_line(id, 60))).unwrap_or_default();
    format!("{}{by} ({})", decision.action.name(), one_line(&decision.reason_code, 60))
}

fn count(calls: u64) -> String {
    format!("{calls} call{}", if calls == 1 { "" } else { "s" })
}
