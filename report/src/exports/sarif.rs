//! SARIF 2.1.0 (OASIS standard, 2020): the model of a log, and the log of an evaluation.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, ReviewItem, SidePointer, Verdict};
use counterproof_artifact::{CaseId, Sha256Digest, Side};
use counterproof_evaluator::{ReasonCode, evaluation_text, text};
use counterproof_validation::Code;
use serde::Serialize;

use super::context::CaseLocation;
use crate::site::encode_path;
use crate::view::verdict;

/// A log with one run (3.13).
#[derive(Debug, Serialize)]
pub struct Log<'a> {
    /// The address of the JSON Schema.
    #[serde(rename = "$schema")]
    pub schema: &'static str,
    /// The version of the standard.
    pub version: &'static str,
    /// The run.
    pub runs: [Run<'a>; 1],
}

impl<'a> Log<'a> {
    /// A log with this run.
    pub const fn new(run: Run<'a>) -> Self {
        Self { schema: "https://json.schemastore.org/sarif-2.1.0.json", version: "2.1.0", runs: [run] }
    }
}

/// A run of a tool (3.14).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run<'a> {
    /// The tool.
    pub tool: Tool<'a>,
    /// The identity that separates these results from other results for the same commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automation_details: Option<Identity>,
    /// How the tool ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invocations: Vec<Invocation>,
    /// The unit of columns.
    pub column_kind: &'static str,
    /// The results.
    pub results: Vec<SarifResult<'a>>,
}

impl<'a> Run<'a> {
    /// A run of this program with these rules and results. Columns count Unicode characters.
    pub const fn new(rules: Vec<Rule<'a>>, results: Vec<SarifResult<'a>>) -> Self {
        let driver = Driver { name: "counterproof", semantic_version: env!("CARGO_PKG_VERSION"), rules };
        Self {
            tool: Tool { driver },
            automation_details: None,
            invocations: Vec::new(),
            column_kind: "unicodeCodePoints",
            results,
        }
    }
}

/// A tool (3.18).
#[derive(Debug, Serialize)]
pub struct Tool<'a> {
    /// The program.
    pub driver: Driver<'a>,
}

/// The program of a tool (3.19).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Driver<'a> {
    /// The name of the program.
    pub name: &'static str,
    /// The version of the program.
    pub semantic_version: &'static str,
    /// The rules that results refer to.
    pub rules: Vec<Rule<'a>>,
}

/// A rule (3.49).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule<'a> {
    /// The stable code.
    pub id: Cow<'a, str>,
    /// The meaning in one sentence.
    pub short_description: Text,
    /// The meaning in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_description: Option<Text>,
    /// The remedy.
    pub help: Text,
    /// The default level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_configuration: Option<Configuration>,
}

/// The default configuration of a rule (3.50).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Configuration {
    /// The default level.
    pub level: Level,
}

/// A message (3.11).
#[derive(Debug, Clone, Serialize)]
pub struct Text {
    /// The text on one line.
    pub text: String,
}

impl Text {
    /// A text as it is.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Any text as a message. Braces are doubled, because a single one starts a placeholder (3.11.5). Links are broken, because
    /// the text may come from an agent (3.11.6).
    pub fn message(text: &str) -> Self {
        Self::plain(text.replace('{', "{{").replace('}', "}}").replace("](", "] ("))
    }
}

/// The identity of a run (3.17).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Identity {
    /// The identity: parts separated by slashes.
    pub id: &'static str,
}

/// An invocation of the tool (3.20).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Invocation {
    /// Whether the tool finished.
    pub execution_successful: bool,
    /// Notes on the invocation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_execution_notifications: Vec<Notification>,
}

/// A note on an invocation (3.58).
#[derive(Debug, Serialize)]
pub struct Notification {
    /// The level.
    pub level: Level,
    /// The text.
    pub message: Text,
}

/// The level of a result or notification (3.27.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A serious problem.
    Error,
    /// A possible problem.
    Warning,
    /// Information.
    Note,
}

/// A result (3.27).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SarifResult<'a> {
    /// The id of the rule.
    pub rule_id: &'a str,
    /// The index of the rule in the rules of the driver.
    pub rule_index: usize,
    /// The level.
    pub level: Level,
    /// The message.
    pub message: Text,
    /// The location.
    pub locations: [Location<'a>; 1],
    /// The properties that identify the result across runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_fingerprints: Option<Fingerprints>,
}

/// A location (3.28).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Location<'a> {
    /// The file.
    pub physical_location: PhysicalLocation,
    /// The element within the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logical_locations: Option<[LogicalLocation<'a>; 1]>,
}

/// A location in a file (3.29).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PhysicalLocation {
    /// The file.
    pub artifact_location: ArtifactLocation,
    /// The part of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
}

/// The address of a file (3.4).
#[derive(Debug, Serialize)]
pub struct ArtifactLocation {
    /// The percent-encoded URI reference.
    pub uri: String,
}

/// A part of a file (3.30).
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Region {
    /// The line, counted from 1.
    pub start_line: usize,
    /// The column, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_column: Option<usize>,
}

/// An element within a file (3.33).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogicalLocation<'a> {
    /// The name of the element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// The name with the path to the element.
    pub fully_qualified_name: Cow<'a, str>,
    /// The kind of the element.
    pub kind: &'static str,
}

/// Values that identify a result across runs (3.27.17).
#[derive(Debug, Serialize)]
pub struct Fingerprints {
    /// The fingerprint that GitHub uses. Other tools derive it from the source line.
    #[serde(rename = "primaryLocationLineHash")]
    pub line: String,
    /// The digest of case, code and location.
    #[serde(rename = "counterproofCase/v1")]
    pub case: String,
}

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
        let meaning = Text::message(&meaning(code));
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

/// The meaning of a code. For a code of a newer version, the words of the code itself.
pub(crate) fn meaning(code: &str) -> String {
    let of_reason = ReasonCode::parse(code).map(ReasonCode::meaning);
    let of_violation = || Code::ALL.iter().find(|known| known.as_str() == code).map(|known| known.meaning());
    of_reason.or_else(of_violation).map_or_else(|| code.replace('-', " "), str::to_owned)
}
