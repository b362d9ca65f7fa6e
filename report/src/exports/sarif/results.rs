//! `results.sarif`: the changes as SARIF results, for code hosts and editors. One result per case that is worse or different, by
//! the reason that decided its verdict, and one per new finding.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, ReviewItem, SidePointer, Verdict};
use counterproof_artifact::{CaseId, Sha256Digest, Side};

use super::model::{
    ArtifactLocation, Fingerprints, Identity, Invocation, Level, Location, Log, LogicalLocation, Notification,
    PhysicalLocation, Region, Rule, Run, SarifResult, Text,
};
use super::rules;
use crate::exports::report_context::CaseLocation;
use crate::url_path::encode_path;
use crate::view::verdict;
use counterproof_evaluator::ReasonCode;
use counterproof_evaluator::evaluation_text;
use counterproof_evaluator::text;

/// The maximum number of results of a run on GitHub.
const MOST_RESULTS: usize = 25_000;

/// The size limit of all results. GitHub accepts 10 MB of compressed data, and compression never makes them much longer.
const RESULTS_UP_TO_BYTES: usize = 9_500_000;

/// The maximum number of characters of a message.
const LONGEST_MESSAGE: usize = 300;

/// The number of hexadecimal digits of a fingerprint.
const FINGERPRINT_DIGITS: usize = 32;

/// The SARIF log of an evaluation.
pub(crate) fn render(evaluation: &Evaluation, locations: &HashMap<CaseId, CaseLocation>) -> String {
    let cases = evaluation.worst_first().into_iter();
    let mut review: HashMap<&CaseId, &ReviewItem> = HashMap::new();
    for item in &evaluation.gate.review {
        if let Some(case_id) = &item.case_id {
            review.entry(case_id).or_insert(item);
        }
    }
    let problems = cases.flat_map(|case| {
        let input = CaseInput { case, evaluation, location: locations.get(&case.case_id) };
        problems(case, review.get(&case.case_id).copied()).into_iter().map(move |problem| result(&input, &problem))
    });
    let (mut results, omitted) = within_limits(problems);
    let rules = rules(&mut results);
    let mut run = Run::new(rules, results);
    run.automation_details = Some(Identity { id: "counterproof/" });
    let mut notes = not_judged_note(evaluation);
    notes.extend(omission_note(omitted));
    run.invocations = vec![Invocation { execution_successful: true, tool_execution_notifications: notes }];
    // Serializing texts and numbers cannot fail.
    let mut text = serde_json::to_string(&Log::new(run)).unwrap_or_default();
    text.push('\n');
    text
}

/// The results up to the limits of code hosts, and the number of omitted ones.
fn within_limits<'a>(all: impl Iterator<Item = SarifResult<'a>>) -> (Vec<SarifResult<'a>>, usize) {
    let mut results = Vec::new();
    let (mut bytes, mut omitted) = (0, 0);
    for result in all {
        let length = serde_json::to_string(&result).unwrap_or_default().len() + 1;
        // Results are sorted worst first. After the first omitted one, all others are omitted, so that no gap hides one.
        if omitted > 0 || results.len() == MOST_RESULTS || bytes + length > RESULTS_UP_TO_BYTES {
            omitted += 1;
        } else {
            bytes += length;
            results.push(result);
        }
    }
    (results, omitted)
}

/// The rules that results refer to. Sets the rule index of each result.
fn rules<'a>(results: &mut [SarifResult<'a>]) -> Vec<Rule<'a>> {
    let codes: BTreeSet<&'a str> = results.iter().map(|result| result.rule_id).collect();
    let indexes: HashMap<_, _> = codes.iter().enumerate().map(|(index, code)| (*code, index)).collect();
    for result in results {
        result.rule_index = indexes[result.rule_id];
    }
    let rule = |code: &'a str| {
        let meaning = Text::message(&rules::meaning(code));
        Rule {
            id: Cow::Borrowed(code),
            short_description: meaning.clone(),
            full_description: Some(meaning.clone()),
            help: meaning,
            default_configuration: None,
        }
    };
    codes.into_iter().map(rule).collect()
}

/// A note where the gate has nothing to judge by.
fn not_judged_note(evaluation: &Evaluation) -> Vec<Notification> {
    if evaluation.gate.outcome != GateOutcome::NotJudged {
        return Vec::new();
    }
    vec![Notification { level: Level::Note, message: Text::message(&evaluation_text::outcome(evaluation)) }]
}

fn omission_note(omitted: usize) -> Vec<Notification> {
    if omitted == 0 {
        return Vec::new();
    }
    let results = text::count(omitted, "result is", "results are");
    let text =
        format!("{results} omitted, least severe first: code hosts limit the number; evaluation.json has all cases");
    vec![Notification { level: Level::Warning, message: Text::plain(text) }]
}

/// The level of a verdict; `None` for a verdict that is no problem.
const fn level(verdict: Verdict) -> Option<Level> {
    match verdict {
        Verdict::Regressed | Verdict::Broken | Verdict::Invalid | Verdict::Missing => Some(Level::Error),
        Verdict::Changed | Verdict::StillBroken => Some(Level::Warning),
        Verdict::Added | Verdict::Undecided => Some(Level::Note),
        Verdict::Noisy | Verdict::Improved | Verdict::Recovered | Verdict::Unchanged => None,
    }
}

/// A case with what its results refer to.
struct CaseInput<'a> {
    case: &'a CaseEvaluation,
    evaluation: &'a Evaluation,
    location: Option<&'a CaseLocation>,
}

/// A reason or a finding to report.
struct Problem<'a> {
    code: &'a str,
    level: Level,
    message: Cow<'a, str>,
    pointers: &'a [SidePointer],
    /// The location within the case, as a part of its identity; empty for a reason.
    location: String,
}

/// The deciding reason, and each new finding once per code and location. A case whose verdict is no problem has its first
/// review item instead of the reason.
fn problems<'a>(case: &'a CaseEvaluation, review: Option<&'a ReviewItem>) -> Vec<Problem<'a>> {
    let mut problems = Vec::new();
    if let (None, Some(item)) = (level(case.verdict), review) {
        let is_hard = item.code == ReasonCode::MustUnmet.as_str();
        problems.push(Problem {
            code: &item.code,
            level: if is_hard { Level::Error } else { Level::Warning },
            message: Cow::Owned(format!("{}: {}", verdict::show(case.verdict).word, item.message)),
            pointers: &item.pointers,
            location: String::new(),
        });
    }
    let decisive = case.reasons.first().zip(level(case.verdict));
    if let Some((reason, level)) = decisive {
        let message = Cow::Owned(format!("{}: {}", verdict::of_case(case).word, reason.message));
        let pointers = &reason.pointers;
        problems.push(Problem { code: &reason.code, level, message, pointers, location: String::new() });
    }
    let mut seen: HashSet<(&str, String)> = HashSet::new();
    for finding in case.findings.iter().filter(|finding| !finding.in_baseline) {
        let at = finding.pointers.iter().find(|at| at.side == Side::New);
        let location = at.map(without_indexes).unwrap_or_default();
        let is_reported =
            decisive.is_some_and(|(reason, _)| reason.code == finding.code && reason.message == finding.message);
        if !is_reported && seen.insert((&finding.code, location.clone())) {
            let level = decisive.map_or(Level::Note, |(_, level)| level);
            let message = Cow::Borrowed(finding.message.as_str());
            problems.push(Problem { code: &finding.code, level, message, pointers: &finding.pointers, location });
        }
    }
    problems
}

/// The pointer without list indexes, which change when elements before it are added or removed.
fn without_indexes(at: &SidePointer) -> String {
    let named = at.pointer.split('/').filter(|part| part.parse::<usize>().is_err());
    named.collect::<Vec<_>>().join("/")
}

fn result<'a>(input: &CaseInput<'a>, problem: &Problem<'a>) -> SarifResult<'a> {
    let id = input.case.case_id.as_str();
    let (uri, region) = match input.location {
        Some(at) => (encode_path(&at.file), Some(Region { start_line: at.line, start_column: None })),
        None => (artifact(input, problem.pointers), None),
    };
    let pointer = problem.pointers.iter().find(|at| at.side == Side::New).or(problem.pointers.first());
    let pointer = pointer.map(|at| text::one_line(&at.pointer, LONGEST_MESSAGE)).unwrap_or_default();
    SarifResult {
        rule_id: problem.code,
        // Set once all rules are known.
        rule_index: 0,
        level: problem.level,
        message: Text::message(&format!("{id}: {}", text::one_line(&problem.message, LONGEST_MESSAGE))),
        locations: [Location {
            physical_location: PhysicalLocation { artifact_location: ArtifactLocation { uri }, region },
            logical_locations: Some([LogicalLocation {
                name: Some(id),
                fully_qualified_name: Cow::Owned(format!("{id}{pointer}")),
                kind: "object",
            }]),
        }],
        partial_fingerprints: Some(fingerprints(id, problem)),
    }
}

fn fingerprints(id: &str, problem: &Problem<'_>) -> Fingerprints {
    let identity = [id, problem.code, &problem.location].join("\0");
    let digest = Sha256Digest::from_bytes(identity.as_bytes()).to_string();
    let case: String = digest.chars().take(FINGERPRINT_DIGITS).collect();
    Fingerprints { line: format!("{}:1", &case[..FINGERPRINT_DIGITS / 2]), case }
}

/// The path of the artifact in the standard layout of runs.
fn artifact(input: &CaseInput<'_>, pointers: &[SidePointer]) -> String {
    let is_on_new = pointers.is_empty() || pointers.iter().any(|at| at.side == Side::New);
    let (side, run) = if is_on_new && input.case.verdict != Verdict::Missing {
        (Side::New, &input.evaluation.new)
    } else {
        (Side::Baseline, &input.evaluation.baseline)
    };
    encode_path(&format!("runs/{side}/{}/{}.json", run.run_id, input.case.case_id))
}
