//! SARIF 2.1.0 (OASIS standard, 2020): the frame of a log, and the log of an evaluation. Numbers in brackets are sections of the
//! standard.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, ReviewItem, SidePointer, Verdict};
use counterproof_artifact::{CaseId, Sha256Digest, Side};
use counterproof_evaluator::{RankedCase, ReasonCode, Standing, evaluation_text, text, worst_first};
use counterproof_validation::Code;
use serde_json::{Map, Value, json};

use super::context::CaseLocation;
use crate::site::encode_path;

/// The levels of results and notifications (3.27.10).
pub const ERROR: &str = "error";
const WARNING: &str = "warning";
const NOTE: &str = "note";

/// Where the tool is described (3.19.4). A name and not an address, because the documentation is not published at one.
const INFORMATION: &str = "urn:counterproof:documentation";

/// Returns a log (3.13) with one run of this program (3.14). `about` has further properties of the run.
pub fn log(rules: &[Value], about: Map<String, Value>, results: Vec<Value>) -> Value {
    let driver = json!({
        "name": "counterproof",
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "informationUri": INFORMATION,
        "rules": rules,
    });
    let mut run = Map::new();
    run.insert("tool".to_owned(), json!({"driver": driver}));
    run.extend(about);
    run.insert("columnKind".to_owned(), json!("unicodeCodePoints"));
    // Moved and not written with `json!`, which would copy up to 25,000 results.
    run.insert("results".to_owned(), Value::Array(results));
    let mut log = json!({"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0"});
    log["runs"] = Value::Array(vec![Value::Object(run)]);
    log
}

/// Returns a location in a file (3.28, 3.29). `uri` is percent-encoded.
pub fn location(uri: &str, region: Option<Value>) -> Value {
    // Viewers that open a location need a line, so a whole file is its first one.
    let region = region.unwrap_or_else(|| json!({"startLine": 1}));
    json!({"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}})
}

/// Returns any text as a message (3.11).
fn message(text: &str) -> Value {
    // A single brace starts a placeholder (3.11.5), so braces are doubled. Links are broken, because the text may come from an
    // agent (3.11.6).
    json!({"text": text.replace('{', "{{").replace('}', "}}").replace("](", "] (")})
}

/// The maximum number of results of a run on GitHub.
const MOST_RESULTS: usize = 25_000;

/// The size limit of all results. GitHub accepts 10 MB of compressed data, and compression never makes them much longer.
const RESULTS_UP_TO_BYTES: usize = 9_500_000;

const LONGEST_MESSAGE: usize = 300;

const FINGERPRINT_DIGITS: usize = 32;

/// The SARIF log of an evaluation.
pub(crate) fn render(evaluation: &Evaluation, locations: &HashMap<CaseId, CaseLocation>) -> String {
    let mut review: HashMap<&CaseId, &ReviewItem> = HashMap::new();
    for item in &evaluation.gate.review {
        if let Some(case_id) = &item.case_id {
            review.entry(case_id).or_insert(item);
        }
    }
    let ranked = worst_first(evaluation);
    let problems = ranked.iter().flat_map(|ranked| {
        let case = ranked.case;
        let at = locations.get(&case.case_id);
        let problems = problems(ranked, review.get(&case.case_id).copied()).into_iter();
        problems.map(move |problem| (problem.code, result(evaluation, case, at, &problem)))
    });
    let (mut results, omitted) = within_limits(problems);
    let rules = rules(&mut results);
    let mut notes = Vec::new();
    if evaluation.gate.outcome == GateOutcome::NotJudged {
        notes.push(json!({"level": NOTE, "message": message(&evaluation_text::outcome(evaluation))}));
    }
    if omitted > 0 {
        let results = text::count(omitted, "result is", "results are");
        let text = format!(
            "{results} omitted, least severe first: code hosts limit the number; evaluation.json has all cases"
        );
        notes.push(json!({"level": WARNING, "message": {"text": text}}));
    }
    let mut invocation = json!({"executionSuccessful": true});
    if !notes.is_empty() {
        invocation["toolExecutionNotifications"] = Value::Array(notes);
    }
    let mut about = Map::new();
    // Results of one identity replace each other on GitHub, so these need one that results of `validate` do not have.
    about.insert("automationDetails".to_owned(), json!({"id": "counterproof/"}));
    about.insert("invocations".to_owned(), json!([invocation]));
    log(&rules, about, results.into_iter().map(|(_, result)| result).collect()).to_string() + "\n"
}

/// A result with the code of its rule.
type CodedResult<'a> = (&'a str, Value);

/// The results up to the limits of code hosts, and the number of omitted ones.
fn within_limits<'a>(all: impl Iterator<Item = CodedResult<'a>>) -> (Vec<CodedResult<'a>>, usize) {
    let mut results = Vec::new();
    let (mut bytes, mut omitted) = (0, 0);
    for result in all {
        let length = result.1.to_string().len() + 1;
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
fn rules(results: &mut [CodedResult<'_>]) -> Vec<Value> {
    // Sorted, so that the rules do not depend on the order of the cases.
    let codes: BTreeSet<&str> = results.iter().map(|(code, _)| *code).collect();
    let indexes: HashMap<_, _> = codes.iter().enumerate().map(|(index, code)| (*code, index)).collect();
    for (code, result) in results {
        result["ruleIndex"] = json!(indexes[code]);
    }
    let rule = |code: &str| {
        let meaning = message(&meaning(code));
        // GitHub requires all three texts.
        let name = pascal_case(code);
        json!({"id": code, "name": name, "shortDescription": meaning, "fullDescription": meaning, "help": meaning})
    };
    codes.into_iter().map(rule).collect()
}

/// The name of a rule (3.49.7), such as `OutputChanged` for `output-changed`.
fn pascal_case(code: &str) -> String {
    let words = code.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect();
    // A code of a newer version may be any text.
    if name.is_empty() { "Other".to_owned() } else { name }
}

/// The level of a case, which follows the gate; `None` for a case that is not a problem.
const fn level(ranked: &RankedCase<'_>) -> Option<&'static str> {
    if ranked.violated.is_some() {
        return Some(ERROR);
    }
    match (ranked.standing, ranked.case.verdict) {
        // Worse for sure, but the limits of the gate allow it.
        (Standing::Convicted, _) | (Standing::Other, Verdict::Invalid | Verdict::Missing | Verdict::StillBroken) => {
            Some(WARNING)
        }
        (Standing::Other, Verdict::Noisy | Verdict::Improved | Verdict::Recovered | Verdict::Unchanged) => None,
        (Standing::Unconfirmed | Standing::Other, _) => Some(NOTE),
    }
}

struct Problem<'a> {
    code: &'a str,
    level: &'static str,
    message: Cow<'a, str>,
    pointers: &'a [SidePointer],
    /// The location within the case, as a part of its identity; empty for a reason.
    location: String,
}

/// The deciding reason, and each new finding once per code and location.
fn problems<'a>(ranked: &RankedCase<'a>, review: Option<&'a ReviewItem>) -> Vec<Problem<'a>> {
    let case = ranked.case;
    let mut problems = Vec::new();
    let level = level(ranked);
    // A case that is not a problem has no deciding reason, but a review item may still ask for a look at it.
    if let (None, Some(item)) = (level, review) {
        problems.push(Problem {
            code: &item.code,
            level: WARNING,
            message: Cow::Owned(format!("{}: {}", ranked.verdict(), item.message)),
            pointers: &item.pointers,
            location: String::new(),
        });
    }
    let decisive = case.reasons.first().zip(level);
    if let Some((reason, level)) = decisive {
        // A person should look at a change with a review item, whatever the gate says of it.
        let level =
            if level == NOTE && ranked.standing == Standing::Other && review.is_some() { WARNING } else { level };
        let message = Cow::Owned(format!("{}: {}", ranked.verdict(), reason.message));
        let pointers = &reason.pointers;
        problems.push(Problem { code: &reason.code, level, message, pointers, location: String::new() });
    }
    let mut seen: HashSet<(&str, String)> = HashSet::new();
    for finding in case.findings.iter().filter(|finding| !finding.in_baseline) {
        let at = finding.pointers.iter().find(|at| at.side == Side::New);
        let location = at.map(without_indexes).unwrap_or_default();
        // A finding can be the deciding reason. Code hosts would show it twice.
        let is_reported =
            decisive.is_some_and(|(reason, _)| reason.code == finding.code && reason.message == finding.message);
        if !is_reported && seen.insert((&finding.code, location.clone())) {
            let level = decisive.map_or(NOTE, |(_, level)| level);
            let message = Cow::Borrowed(finding.message.as_str());
            problems.push(Problem { code: &finding.code, level, message, pointers: &finding.pointers, location });
        }
    }
    problems
}

/// The pointer without list indexes.
fn without_indexes(at: &SidePointer) -> String {
    // An index changes if elements before it are added or removed, and the finding would look like a new one.
    let named = at.pointer.split('/').filter(|part| part.parse::<usize>().is_err());
    named.collect::<Vec<_>>().join("/")
}

fn result(evaluation: &Evaluation, case: &CaseEvaluation, at: Option<&CaseLocation>, problem: &Problem<'_>) -> Value {
    let id = case.case_id.as_str();
    let mut location = match at {
        Some(at) => location(&encode_path(&at.file), Some(json!({"startLine": at.line}))),
        // A location needs a file. Without the cases file, it is the artifact of the case.
        None => location(&artifact(evaluation, case, problem.pointers), None),
    };
    let pointer = problem.pointers.iter().find(|at| at.side == Side::New).or(problem.pointers.first());
    let pointer = pointer.map(|at| text::one_line(&at.pointer, LONGEST_MESSAGE)).unwrap_or_default();
    location["logicalLocations"] = json!([
        {"name": id, "fullyQualifiedName": format!("{id}{pointer}"), "kind": "object"}
    ]);
    json!({
        "ruleId": problem.code,
        // Set once all rules are known.
        "ruleIndex": 0,
        "level": problem.level,
        "message": message(&format!("{id}: {}", text::one_line(&problem.message, LONGEST_MESSAGE))),
        "locations": [location],
        "partialFingerprints": fingerprints(id, problem),
    })
}

/// The values that identify a result across runs (3.27.17).
fn fingerprints(id: &str, problem: &Problem<'_>) -> Value {
    // Without the message, which has values that change from run to run.
    let identity = [id, problem.code, &problem.location].join("\0");
    let digest = Sha256Digest::from_bytes(identity.as_bytes()).to_string();
    let case = &digest[..FINGERPRINT_DIGITS];
    // The first is the one that GitHub uses. Other tools derive it from the source line.
    json!({"primaryLocationLineHash": format!("{}:1", &case[..FINGERPRINT_DIGITS / 2]), "counterproofCase/v1": case})
}

/// The path of the artifact in the standard layout of runs.
fn artifact(evaluation: &Evaluation, case: &CaseEvaluation, pointers: &[SidePointer]) -> String {
    let is_on_new = pointers.is_empty() || pointers.iter().any(|at| at.side == Side::New);
    let (side, run) = if is_on_new && case.verdict != Verdict::Missing {
        (Side::New, &evaluation.new)
    } else {
        (Side::Baseline, &evaluation.baseline)
    };
    encode_path(&format!("runs/{side}/{}/{}.json", run.run_id, case.case_id))
}

/// The meaning of a code. For a code of a newer version, the words of the code itself.
pub(crate) fn meaning(code: &str) -> String {
    let of_reason = ReasonCode::parse(code).map(ReasonCode::meaning);
    let of_violation = || Code::ALL.iter().find(|known| known.as_str() == code).map(|known| known.meaning());
    of_reason.or_else(of_violation).map_or_else(|| code.replace('-', " "), str::to_owned)
}
