//! `results.sarif`: what moved as SARIF 2.1.0 (OASIS standard, 2020), as code hosts and editors read it: one result for each
//! case that is worse or differs, by the reason that decided, and one for each thing that is newly wrong with it.

mod log;
mod rules;

use std::collections::{BTreeSet, HashMap, HashSet};

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, SidePointer, Verdict};
use counterproof_artifact::{CaseId, Sha256Digest, Side};

use self::log::{
    ArtifactLocation, Driver, Finding, Fingerprints, Identity, Invocation, Level, Location, Log, LogicalLocation,
    Notification, PhysicalLocation, Region, Rule, Run, Text, Tool,
};
use super::CasePlace;
use crate::report::{names, verdicts};
use crate::values::text;

/// Results of one run that GitHub takes.
const RESULTS_AT_MOST: usize = 25_000;

/// Bytes of all results: GitHub takes 10 MB when they are compressed, which never makes them much longer.
const RESULTS_UP_TO_BYTES: usize = 9_500_000;

/// Characters of a message.
const MESSAGE: usize = 300;

/// Hexadecimal digits of a fingerprint.
const FINGERPRINT: usize = 32;

/// The document.
pub(super) fn render(evaluation: &Evaluation, places: &HashMap<CaseId, CasePlace>) -> String {
    let cases = evaluation.worst_first().into_iter();
    let all = cases.flat_map(|case| findings(case, evaluation, places.get(&case.case_id)));
    let mut results: Vec<Finding<'_>> = Vec::new();
    let (mut bytes, mut omitted) = (0, 0);
    for finding in all {
        let length = serde_json::to_string(&finding).unwrap_or_default().len() + 1;
        // Worst first: what comes behind one that has no room is left out too.
        if omitted > 0 || results.len() == RESULTS_AT_MOST || bytes + length > RESULTS_UP_TO_BYTES {
            omitted += 1;
        } else {
            bytes += length;
            results.push(finding);
        }
    }
    let codes: BTreeSet<_> = results.iter().map(|result| result.rule_id).collect();
    let rule = |code: &&str| {
        let meaning = rules::meaning(code);
        let text = || Text { text: said(&meaning) };
        Rule { id: (*code).to_owned(), short_description: text(), full_description: text(), help: text() }
    };
    let rules: Vec<_> = codes.iter().map(rule).collect();
    let indexes: HashMap<_, _> = codes.iter().enumerate().map(|(index, code)| (*code, index)).collect();
    for result in &mut results {
        result.rule_index = indexes[result.rule_id];
    }
    let driver = Driver { name: "counterproof", semantic_version: env!("CARGO_PKG_VERSION"), rules };
    let run = Run {
        tool: Tool { driver },
        automation_details: Identity { id: "counterproof/" },
        invocations: [Invocation { execution_successful: true, tool_execution_notifications: left_out(omitted) }],
        column_kind: "unicodeCodePoints",
        results,
    };
    let log = Log { schema: "https://json.schemastore.org/sarif-2.1.0.json", version: "2.1.0", runs: [run] };
    // Every part is a text or a number: there is nothing that JSON cannot say.
    let mut text = serde_json::to_string(&log).unwrap_or_default();
    text.push('\n');
    text
}

fn left_out(omitted: usize) -> Vec<Notification> {
    if omitted == 0 {
        return Vec::new();
    }
    let results = text::count(omitted, "result is", "results are");
    let text = format!("{results} left out, the least bad: code hosts take no more; evaluation.json has them all");
    vec![Notification { level: Level::Warning, message: Text { text } }]
}

/// How bad a verdict is; `None` where nothing is to be said.
const fn level(verdict: Verdict) -> Option<Level> {
    match verdict {
        Verdict::Regressed | Verdict::Broken | Verdict::Invalid | Verdict::Missing => Some(Level::Error),
        Verdict::Changed | Verdict::StillBroken => Some(Level::Warning),
        Verdict::Added => Some(Level::Note),
        Verdict::Noisy | Verdict::Improved | Verdict::Recovered | Verdict::Unchanged => None,
    }
}

fn findings<'a>(case: &'a CaseEvaluation, evaluation: &Evaluation, place: Option<&CasePlace>) -> Vec<Finding<'a>> {
    let mut found = Vec::new();
    let decided = case.reasons.first().zip(level(case.verdict));
    if let Some((reason, level)) = decided {
        let message = format!("{}: {}", verdicts::show(case.verdict).word, reason.message);
        found.push(finding(case, evaluation, place, (&reason.code, level), "", (&message, &reason.pointers)));
    }
    let mut seen: HashSet<(&str, String)> = HashSet::new();
    for new in case.findings.iter().filter(|new| !new.in_baseline) {
        let within = new.pointers.iter().find(|at| at.side == Side::New).map(without_indexes).unwrap_or_default();
        let is_told = decided.is_some_and(|(reason, _)| reason.code == new.code && reason.message == new.message);
        if !is_told && seen.insert((&new.code, within.clone())) {
            let level = decided.map_or(Level::Note, |(_, level)| level);
            found.push(finding(case, evaluation, place, (&new.code, level), &within, (&new.message, &new.pointers)));
        }
    }
    found
}

/// A place by its names alone: what stands before it in a list may come and go.
fn without_indexes(at: &SidePointer) -> String {
    let named = at.pointer.split('/').filter(|part| part.parse::<usize>().is_err());
    named.collect::<Vec<_>>().join("/")
}

fn finding<'a>(
    case: &'a CaseEvaluation,
    evaluation: &Evaluation,
    place: Option<&CasePlace>,
    (rule_id, level): (&'a str, Level),
    within: &str,
    (message, pointers): (&str, &[SidePointer]),
) -> Finding<'a> {
    let id = case.case_id.as_str();
    let identity = Sha256Digest::of([id, rule_id, within].join("\0").as_bytes()).to_string();
    let identity: String = identity.chars().take(FINGERPRINT).collect();
    let (uri, region) = match place {
        Some(place) => (names::encode_path(&place.file), Some(Region { start_line: place.line })),
        None => (artifact(case, evaluation, pointers), None),
    };
    let pointer = pointers.iter().find(|at| at.side == Side::New).or(pointers.first());
    let pointer = pointer.map(|at| text::one_line(&at.pointer, MESSAGE)).unwrap_or_default();
    Finding {
        rule_id,
        rule_index: 0,
        level,
        message: Text { text: said(&format!("{id}: {}", text::one_line(message, MESSAGE))) },
        locations: [Location {
            physical_location: PhysicalLocation { artifact_location: ArtifactLocation { uri }, region },
            logical_locations: [LogicalLocation {
                name: id,
                fully_qualified_name: format!("{id}{pointer}"),
                kind: "object",
            }],
        }],
        partial_fingerprints: Fingerprints { line: format!("{}:1", &identity[..FINGERPRINT / 2]), case: identity },
    }
}

/// A text as a message is written: braces doubled, since a single one begins a placeholder (3.11.5), and nothing that is read
/// as a link (3.11.6), which an agent may well have said.
fn said(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}").replace("](", "] (")
}

/// The artifact that the reason is about, as runs are laid out.
fn artifact(case: &CaseEvaluation, evaluation: &Evaluation, pointers: &[SidePointer]) -> String {
    let is_on_new = pointers.is_empty() || pointers.iter().any(|at| at.side == Side::New);
    let (side, run) = if is_on_new && case.verdict != Verdict::Missing {
        (Side::New, &evaluation.new)
    } else {
        (Side::Baseline, &evaluation.baseline)
    };
    names::encode_path(&format!("runs/{side}/{}/{}.json", run.run_id, case.case_id))
}
