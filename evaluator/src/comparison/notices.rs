//! Notices: what a reader must know before any number of a comparison, most important first. Each of them says that a
//! difference, or none, may have another reason than the agent.

use counterproof_artifact::evaluation::{Notice, Verdict};
use counterproof_artifact::{CaseId, Run, Sides};
use serde_json::{Map, Value};

use super::compare::ComparedRow;
use super::request::Request;
use crate::diff::{JsonChanges, diff_json};
use crate::gate::NO_BASELINE;
use crate::judge::ReasonCode;
use crate::judge::outage;
use crate::judge::verdict::OUTAGE_CHARS;
use crate::load::ComparedRun;
use crate::messages;
use crate::statistics::DeviatingRun;
use crate::values::text;

/// Different records in more than one of this many cases put the whole comparison in doubt.
const RECORDS_SHARE: usize = 3;

/// Characters of the id of a run in a message.
const RUN_CHARS: usize = 60;

/// Maximum number of cases that a message names.
const CASES_NAMED: usize = 5;

/// Fields of `run.json` that decide what an agent is asked, how its answer is read, and how long it may take. Other recorders may add fields of any meaning.
const SETTINGS: [&str; 13] = [
    "protocol",
    "model",
    "system_prompt_sha256",
    "tools_sha256",
    "request_sha256",
    "request_headers",
    "risk",
    "deterministic",
    "timeout_ms",
    "phase_timeouts_ms",
    "retries",
    "retry_policy",
    "limits",
];

pub(super) fn all(request: &Request<'_>, rows: &[ComparedRow], deviating: Option<DeviatingRun>) -> Vec<Notice> {
    let notices = [
        same_run(request),
        outages(rows),
        different_records(rows),
        changed_inputs(rows),
        deviating.map(|run| bad_hour(request, run)),
        changed_configuration(request),
    ];
    notices.into_iter().flatten().collect()
}

/// The notice on a run folder that is on both sides. A comparison with itself has no differences, and says nothing about the
/// agent. A copy may be intended: `accept` makes one.
fn same_run(request: &Request<'_>) -> Option<Notice> {
    let is_same = |run: &&ComparedRun| request.baseline.iter().any(|old| old.reader().has_same_folder(run.reader()));
    let run = request.new.iter().find(is_same)?.reader().run();
    if request.is_alone {
        return Some(Notice {
            code: NO_BASELINE.to_owned(),
            message: "no baseline: only the expectations and the answers of the new run are checked".to_owned(),
            case_ids: Vec::new(),
        });
    }
    let is_repeated = request.baseline.is_repeated() || request.new.is_repeated();
    let what = if is_repeated { "on both sides" } else { "compared with itself, so that nothing can differ" };
    Some(Notice {
        code: "same-run".to_owned(),
        message: format!("the run `{}` is {what}", text::one_line(run.run_id.as_str(), RUN_CHARS)),
        case_ids: Vec::new(),
    })
}

/// The notice on runs of one side that differ among themselves.
fn bad_hour(request: &Request<'_>, DeviatingRun { side, run, passed }: DeviatingRun) -> Notice {
    let runs = request.runs(side);
    let id = runs.get(run).unwrap_or_else(|| runs.first()).reader().run().run_id.as_str();
    Notice {
        code: "bad-hour".to_owned(),
        message: format!(
            "the runs of {side} differ among themselves: a bad hour? `{}` solves {}; whole runs are compared instead of cases",
            text::one_line(id, RUN_CHARS),
            text::count(passed, "case", "cases"),
        ),
        case_ids: Vec::new(),
    }
}

/// The notice on outages, if they are in enough cases to put the rest of the comparison in doubt.
fn outages(rows: &[ComparedRow]) -> Option<Notice> {
    let outages: Vec<_> = rows.iter().filter_map(|row| Some((row, row.outage.as_deref()?))).collect();
    let (_, first) = outages.first().filter(|_| outages.len() >= outage::CASES)?;
    let answers = rows.iter().filter(|row| row.is_answered).count();
    let is_same = outages.iter().all(|(_, text)| text == first);
    let what = if is_same { "are the same text" } else { "are messages of an outage" };
    let shown = text::one_line(first, OUTAGE_CHARS);
    let more = if is_same { "" } else { " and others" };
    Some(Notice {
        code: ReasonCode::AnswerOutage.as_str().to_owned(),
        message: format!("{} of {answers} answers {what}: “{shown}”{more}", outages.len()),
        case_ids: ids(outages.iter().map(|(row, _)| *row)),
    })
}

fn different_records(rows: &[ComparedRow]) -> Option<Notice> {
    let known = rows.iter().filter(|row| row.has_different_records.is_some()).count();
    let different: Vec<_> = rows.iter().filter(|row| row.has_different_records == Some(true)).collect();
    (different.len() * RECORDS_SHARE > known).then(|| Notice {
        code: "different-records".to_owned(),
        message: format!(
            "different records in {} of {}: no id that one agent received was received by the other",
            different.len(),
            text::count(known, "case", "cases")
        ),
        case_ids: ids(different.iter().copied()),
    })
}

fn changed_inputs(rows: &[ComparedRow]) -> Option<Notice> {
    let changed: Vec<_> = rows.iter().filter(|row| row.evaluation.verdict == Verdict::NotComparable).collect();
    let mut named: Vec<_> = changed.iter().take(CASES_NAMED).map(|row| row.evaluation.case_id.to_string()).collect();
    if changed.len() > CASES_NAMED {
        named.push(format!("{} more", changed.len() - CASES_NAMED));
    }
    let what = if changed.len() == 1 { "it is not compared" } else { "they are not compared" };
    (!changed.is_empty()).then(|| Notice {
        code: ReasonCode::InputChanged.as_str().to_owned(),
        message: format!(
            "input changed in {} of {} ({}): {what}",
            changed.len(),
            text::count(rows.len(), "case", "cases"),
            text::list(&named)
        ),
        case_ids: ids(changed.iter().copied()),
    })
}

fn ids<'a>(rows: impl Iterator<Item = &'a ComparedRow>) -> Vec<CaseId> {
    rows.map(|row| row.evaluation.case_id.clone()).collect()
}

/// The notice on settings that differ, such as the model: the runs may differ for them and not for the agent.
fn changed_configuration(request: &Request<'_>) -> Option<Notice> {
    let runs = Sides::new(&request.baseline, &request.new).map(|runs| runs.first().reader().run());
    let changes = different_settings(runs, |field| SETTINGS.contains(&field));
    (!changes.is_empty()).then(|| Notice {
        code: "configuration-changed".to_owned(),
        message: format!("configuration changed: {}; differences may come from it", messages::changes(&changes)),
        case_ids: Vec::new(),
    })
}

/// The differences of two run documents in the fields for which `is_setting` is true.
pub fn different_settings(runs: Sides<&Run>, is_setting: impl Fn(&str) -> bool) -> JsonChanges {
    let settings = |run: &Run| match serde_json::to_value(run) {
        Ok(Value::Object(mut fields)) => {
            fields.retain(|key, _| is_setting(key));
            Value::Object(fields)
        }
        _ => Value::Object(Map::new()),
    };
    let Sides { baseline, new } = runs.map(settings);
    diff_json(&baseline, &new)
}
