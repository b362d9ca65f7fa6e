//! The expectations of the cases file: fixed checks of an answer, limits of its usage, and expressions over it. Both sides are
//! judged by the same code.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use counterproof_artifact::evaluation::{ExpectationResult, Judgement};
use counterproof_artifact::{CaseId, Content, Event, EventBody, ProposedAction, RiskLevel};
use counterproof_cases::{CaseSpec, Expect, Expected, Input};
use counterproof_expression::{MAX_STEPS, Outcome};
use counterproof_validation::json_schema::{self, JsonSchema, More, SchemaOutcome, Violation};
use serde_json::Value;

use super::usage::{self, UsageLimit};
use crate::diff::WithEvidence;
use crate::load::LoadedAnswer;
use crate::load::call_status::refusal;
use crate::load::evidence::FollowedRef;
use crate::load::turns::{self, TurnAnswer};
use crate::messages::step_name;
use crate::values::text;

/// Maximum number of schema violations in one message.
const VIOLATIONS_SHOWN: usize = 5;

/// Maximum number of refused calls in a message.
const REFUSALS_SHOWN: usize = 5;

/// The compiled expectations of all cases.
#[derive(Debug, Clone, Default)]
pub struct Expectations {
    // Shared, because a comparison of changed answers is made many times with the same or one more expectation.
    by_case: HashMap<CaseId, Vec<Arc<Expectation>>>,
}

#[derive(Debug)]
struct Expectation {
    check: Check,
    must: bool,
    /// The turn that it is about, counted from 1. `None` for the whole case.
    turn: Option<usize>,
}

/// An invalid `json_schema`, in a case that was not loaded from a file.
#[derive(Debug, thiserror::Error)]
#[error("case `{case_id}`: `expected.json_schema`: {source}")]
pub struct SchemaError {
    /// The case with the invalid schema.
    pub case_id: CaseId,
    /// The error in the schema.
    pub source: json_schema::SchemaError,
}

#[derive(Debug)]
enum Check {
    ActionRequired(Vec<String>),
    ToolRequired(Vec<String>),
    ToolSequence(Vec<String>),
    RetrievalRequired(Vec<String>),
    MustInclude(Vec<String>),
    MustNotInclude(Vec<String>),
    JsonSchema(Box<JsonSchema>),
    EvidenceRequired,
    NoRefusedCalls,
    Usage(UsageLimit),
    Expect { expect: Expect, input: Arc<Value> },
}

impl Expectations {
    /// Compiles the expectations of the cases, with their schemas.
    pub fn compile(cases: &[CaseSpec]) -> Result<Self, SchemaError> {
        let mut by_case = HashMap::new();
        for case in cases {
            let turns = case.turns.iter().enumerate();
            let turns = turns.map(|(index, turn)| (Some(index + 1), &turn.expected, turn.user.as_str()));
            let mut checks = Vec::new();
            for (turn, expected, user) in turns.chain([(None, &case.expected, case.input.user.as_str())]) {
                let compiled = compile(expected).map_err(|source| SchemaError { case_id: case.id.clone(), source })?;
                let must = expected.must == Some(true);
                let compiled = compiled.into_iter().map(|check| Expectation { check, must, turn });
                let input = Input { user: user.to_owned(), ..case.input.clone() };
                checks.extend(compiled.chain(expressions(expected, &input, turn)).map(Arc::new));
            }
            if !checks.is_empty() {
                by_case.insert(case.id.clone(), checks);
            }
        }
        Ok(Self { by_case })
    }

    /// The expectations with one more for a case, which does not refer to its input.
    #[must_use]
    pub(crate) fn with(&self, case_id: &CaseId, expect: Expect) -> Self {
        let mut expectations = self.clone();
        let must = expect.must;
        let check = Check::Expect { expect, input: Arc::default() };
        expectations.by_case.entry(case_id.clone()).or_default().push(Arc::new(Expectation {
            check,
            must,
            turn: None,
        }));
        expectations
    }

    /// Judges an answer to a case, one judgement for each expectation.
    pub fn judge_one(&self, case_id: &CaseId, answer: WithEvidence<'_>) -> Vec<Judgement> {
        let checks = self.by_case.get(case_id).map(Vec::as_slice).unwrap_or_default();
        let judged = JudgedAnswer::new(answer);
        checks.iter().map(|expectation| judged.judge(expectation)).collect()
    }

    /// Describes the first hard expectation of a case that an answer with these judgements does not meet.
    pub(crate) fn must_unmet(&self, case_id: &CaseId, judgements: &[Judgement]) -> Option<String> {
        let checks = self.by_case.get(case_id).map(Vec::as_slice).unwrap_or_default();
        let (expectation, judgement) =
            checks.iter().zip(judgements).find(|(expectation, judgement)| expectation.must && !judgement.is_met())?;
        let result = expectation.result(None, Some(judgement.clone()));
        Some(super::reasons::expectation_message(&result))
    }

    /// Judges the answers of both sides to a case.
    pub fn judge(
        &self,
        case_id: &CaseId,
        baseline: Option<WithEvidence<'_>>,
        new: Option<WithEvidence<'_>>,
    ) -> Vec<ExpectationResult> {
        // A side without an answer has no judgement.
        let checks = self.by_case.get(case_id).map(Vec::as_slice).unwrap_or_default();
        let (baseline, new) = (baseline.map(JudgedAnswer::new), new.map(JudgedAnswer::new));
        let judge = |expectation: &Arc<Expectation>| {
            let judge = |answer: &JudgedAnswer<'_>| answer.judge(expectation);
            expectation.result(baseline.as_ref().map(judge), new.as_ref().map(judge))
        };
        checks.iter().map(judge).collect()
    }
}

impl Expectation {
    fn result(&self, baseline: Option<Judgement>, new: Option<Judgement>) -> ExpectationResult {
        ExpectationResult {
            code: self.check.code().to_owned(),
            expected: self.check.expected(),
            name: self.check.name(),
            turn: self.turn.map(Into::into),
            must: self.must,
            baseline,
            new,
        }
    }
}

/// An answer, with the parts of it that expectations share.
struct JudgedAnswer<'a> {
    answer: WithEvidence<'a>,
    /// Built on first use: it copies the answer, and most cases have no expressions.
    view: OnceCell<View>,
    /// The turns of the answer, for expectations of one turn.
    turns: OnceCell<Vec<(TurnAnswer, OnceCell<View>)>>,
}

impl<'a> JudgedAnswer<'a> {
    fn new(answer: WithEvidence<'a>) -> Self {
        Self { answer, view: OnceCell::new(), turns: OnceCell::new() }
    }

    fn judge(&self, expectation: &Expectation) -> Judgement {
        let Some(number) = expectation.turn else { return expectation.check.judge(self.answer, &self.view) };
        let split = || turns::of_answer(self.answer.loaded, self.answer.evidence);
        let turns = self.turns.get_or_init(|| split().into_iter().map(|turn| (turn, OnceCell::new())).collect());
        match turns.iter().find(|(turn, _)| turn.number == number as u64) {
            Some((turn, view)) => {
                expectation.check.judge(WithEvidence { loaded: &turn.loaded, evidence: &turn.evidence }, view)
            }
            None if turns.is_empty() => Judgement::Undecided("the run recorded no turns".to_owned()),
            None => Judgement::Unmet(format!("the conversation ended before turn {number}")),
        }
    }
}

fn compile(expected: &Expected) -> Result<Vec<Check>, json_schema::SchemaError> {
    let mut checks = Vec::new();
    checks.extend(expected.action_required.clone().map(Check::ActionRequired));
    checks.extend(expected.tool_required.clone().map(Check::ToolRequired));
    checks.extend(expected.tool_sequence.clone().map(Check::ToolSequence));
    checks.extend(expected.must_include.clone().map(Check::MustInclude));
    checks.extend(expected.must_not_include.clone().map(Check::MustNotInclude));
    checks.extend(
        expected.retrieval_required.as_ref().map(|required| Check::RetrievalRequired(required.doc_ids.clone())),
    );
    if let Some(schema) = &expected.json_schema {
        checks.push(Check::JsonSchema(Box::new(JsonSchema::compile(schema)?)));
    }
    if expected.evidence_required_for_actions == Some(true) {
        checks.push(Check::EvidenceRequired);
    }
    if expected.no_refused_calls == Some(true) {
        checks.push(Check::NoRefusedCalls);
    }
    checks.extend(usage::limits(expected).map(Check::Usage));
    Ok(checks)
}

/// The expressions of a case or of a turn, with the input that they can refer to.
fn expressions(expected: &Expected, input: &Input, turn: Option<usize>) -> Vec<Expectation> {
    let Some(expressions) = &expected.expect else { return Vec::new() };
    // Serialising our own type cannot fail, so the default is never used.
    let input = Arc::new(serde_json::to_value(input).unwrap_or_default());
    let all_must = expected.must == Some(true);
    let expectation = |expect: &Expect| Expectation {
        check: Check::Expect { expect: expect.clone(), input: Arc::clone(&input) },
        must: all_must || expect.must,
        turn,
    };
    // A person has to read a draft before it decides anything.
    expressions.iter().filter(|expect| !expect.draft).map(expectation).collect()
}

impl Check {
    const fn code(&self) -> &'static str {
        match self {
            Check::ActionRequired(_) => "action_required",
            Check::ToolRequired(_) => "tool_required",
            Check::ToolSequence(_) => "tool_sequence",
            Check::RetrievalRequired(_) => "retrieval_required",
            Check::MustInclude(_) => "must_include",
            Check::MustNotInclude(_) => "must_not_include",
            Check::JsonSchema(_) => "json_schema",
            Check::EvidenceRequired => "evidence_required_for_actions",
            Check::NoRefusedCalls => "no_refused_calls",
            Check::Usage(limit) => limit.key,
            Check::Expect { .. } => "expect",
        }
    }

    /// The name that the cases file gives it.
    fn name(&self) -> Option<String> {
        match self {
            Check::Expect { expect, .. } => expect.name.clone(),
            _ => None,
        }
    }

    fn expected(&self) -> String {
        match self {
            Check::ActionRequired(types) => format!("proposes {}", text::list(types)),
            Check::ToolRequired(tools) => format!("calls {}", text::list(tools)),
            Check::ToolSequence(tools) => format!("calls first {}", tools.join(" → ")),
            Check::RetrievalRequired(ids) => format!("retrieves {}", text::list(ids)),
            Check::MustInclude(phrases) => format!("output contains {}", text::list(&quoted(phrases))),
            Check::MustNotInclude(phrases) => format!("output does not contain {}", text::list(&quoted(phrases))),
            Check::JsonSchema(_) => "the output is valid against the case's JSON Schema".to_owned(),
            Check::EvidenceRequired => "every action above low risk has evidence that resolves".to_owned(),
            Check::NoRefusedCalls => "no call is refused by a policy".to_owned(),
            Check::Usage(limit) => limit.expected(),
            Check::Expect { expect, .. } => expected(expect),
        }
    }

    /// Judges an answer. All expressions of a case share one view of it, which is built for the first.
    fn judge(&self, judged: WithEvidence<'_>, view: &OnceCell<View>) -> Judgement {
        let answer = &judged.loaded.answer;
        match self {
            Check::ActionRequired(types) => {
                let present: Vec<_> =
                    answer.proposed_actions.iter().map(|action| action.action_type.as_str()).collect();
                all_present(types, &present, "proposed")
            }
            Check::ToolRequired(tools) => all_present(tools, &called_tools(judged.loaded), "called"),
            Check::ToolSequence(tools) => {
                let called = called_tools(judged.loaded);
                let passed = called.len() >= tools.len() && tools.iter().zip(&called).all(|(want, is)| want == is);
                // At least one tool is listed, so that an empty expected sequence still shows what was called.
                let first: Vec<_> = called.iter().take(tools.len().max(1)).copied().collect();
                let found = if first.is_empty() {
                    "no tool called".to_owned()
                } else {
                    format!("called first {}", first.join(" → "))
                };
                if passed { Judgement::Met(found) } else { Judgement::Unmet(found) }
            }
            Check::RetrievalRequired(ids) => {
                let found = answer.events.iter().filter_map(|event| match &event.body {
                    EventBody::Retrieval(retrieval) => Some(&retrieval.doc_ids),
                    _ => None,
                });
                let found: Vec<_> = found.flatten().map(String::as_str).collect();
                all_present(ids, &found, "retrieved")
            }
            Check::MustInclude(phrases) => {
                let output = searchable(&answer.final_output.content);
                let missing: Vec<_> =
                    phrases.iter().filter(|phrase| !output.contains(&phrase.to_lowercase())).collect();
                if missing.is_empty() {
                    Judgement::Met("all present".to_owned())
                } else {
                    Judgement::Unmet(format!("{} missing", text::list(&quoted(&missing))))
                }
            }
            Check::MustNotInclude(phrases) => {
                let output = searchable(&answer.final_output.content);
                let said: Vec<_> = phrases.iter().filter(|phrase| output.contains(&phrase.to_lowercase())).collect();
                if said.is_empty() {
                    Judgement::Met("none present".to_owned())
                } else {
                    Judgement::Unmet(format!("{} present", text::list(&quoted(&said))))
                }
            }
            Check::JsonSchema(schema) => judge_schema(schema, &answer.final_output.content),
            Check::EvidenceRequired => judge_evidence(&answer.proposed_actions, judged.evidence),
            Check::NoRefusedCalls => judge_refusals(judged.loaded),
            Check::Usage(limit) => limit.judge(judged.loaded),
            Check::Expect { expect, input } => judge(expect, view.get_or_init(|| View::new(judged.loaded)), input),
        }
    }
}

fn judge_refusals(loaded: &LoadedAnswer) -> Judgement {
    // A refusal is recorded in the result of the call, or in the call where the guard answered without one.
    let refused = loaded.answer.events.iter().enumerate().filter_map(|(index, event)| {
        let call = match &event.body {
            EventBody::ToolResult(result) => loaded.index.call_position(&result.call_id).unwrap_or(index),
            _ => index,
        };
        let why = refusal(loaded, index)?;
        Some(format!("{}: {why}", step_name(&loaded.answer.events[call], loaded)))
    });
    let mut refused: Vec<_> = refused.collect();
    if refused.is_empty() {
        // Without a guard, the answer cannot show that a call was refused.
        return if loaded.case.recorded.as_ref().is_some_and(|recorded| recorded.has_guard) {
            Judgement::Met("none refused".to_owned())
        } else {
            Judgement::Undecided("no guard recorded the calls".to_owned())
        };
    }
    let more = refused.len().saturating_sub(REFUSALS_SHOWN);
    refused.truncate(REFUSALS_SHOWN);
    if more > 0 {
        refused.push(format!("{more} more"));
    }
    Judgement::Unmet(text::list(&refused))
}

fn quoted<S: AsRef<str>>(phrases: &[S]) -> Vec<String> {
    phrases.iter().map(|phrase| format!("“{}”", text::one_line(phrase.as_ref(), 80))).collect()
}

fn all_present(wanted: &[String], present: &[&str], done: &str) -> Judgement {
    let missing: Vec<_> = wanted.iter().filter(|name| !present.contains(&name.as_str())).collect();
    if missing.is_empty() {
        Judgement::Met(format!("all {done}"))
    } else {
        Judgement::Unmet(format!("{} not {done}", text::list(&missing)))
    }
}

fn called_tools(loaded: &LoadedAnswer) -> Vec<&str> {
    loaded.answer.events.iter().filter_map(Event::tool_call).map(|call| call.tool.as_str()).collect()
}

/// The output as text to search phrases in: a text as it is, an object as indented JSON, both in lower case.
fn searchable(content: &Content) -> String {
    match content {
        Content::Text(text) => text.to_lowercase(),
        // Indented, so that `"key": "value"` with a space matches as authors write it.
        Content::Json(object) => serde_json::to_string_pretty(object).unwrap_or_default().to_lowercase(),
    }
}

fn judge_schema(schema: &JsonSchema, content: &Content) -> Judgement {
    let value = match content {
        Content::Text(text) => Value::String(text.clone()),
        Content::Json(object) => Value::Object(object.clone()),
    };
    let (violations, more) = match schema.check(&value, VIOLATIONS_SHOWN) {
        SchemaOutcome::Valid => return Judgement::Met("it is valid".to_owned()),
        SchemaOutcome::Undecided(reason) => {
            return Judgement::Undecided(format!("the JSON Schema cannot be checked: {reason}"));
        }
        SchemaOutcome::Invalid { violations, more } => (violations, more),
    };
    let shown: Vec<_> = violations
        .iter()
        .map(|Violation { pointer, message }| {
            let place = if pointer.is_empty() { "the output" } else { pointer };
            format!("{place}: {}", text::one_line(message, 160))
        })
        .collect();
    Judgement::Unmet(match (shown.is_empty(), more) {
        (true, _) => "it is not valid; its violations take too many steps to list".to_owned(),
        (false, More::Counted(0)) => shown.join("; "),
        (false, More::Counted(more)) => format!("{}; and {more} more", shown.join("; ")),
        (false, More::Uncounted) => format!("{}; more are not counted", shown.join("; ")),
    })
}

/// An unstated risk counts as medium. A low-risk action needs no evidence, but the evidence refs that it has must resolve.
fn judge_evidence(actions: &[ProposedAction], evidence: &[Vec<FollowedRef>]) -> Judgement {
    // An unstated risk counts as medium: a producer that states none must not escape the check.
    let lacking: Vec<_> = actions
        .iter()
        .zip(evidence)
        .filter(|(action, refs)| {
            let unresolved = refs.iter().any(|followed| followed.resolved.is_none());
            unresolved || (refs.is_empty() && action.risk_level != RiskLevel::Low)
        })
        .map(|(action, _)| {
            format!("{} ({})", text::one_line(&action.tool_name, 60), text::one_line(&action.action_id, 60))
        })
        .collect();
    if lacking.is_empty() {
        Judgement::Met("all have evidence".to_owned())
    } else {
        Judgement::Unmet(format!("missing or unresolved evidence for {}", text::list(&lacking)))
    }
}

/// Maximum number of characters of an expression in a message.
const MAX_SOURCE_CHARS: usize = 120;

/// Maximum number of values of an expression in a message, and of characters of each value and of the part that has it.
const MAX_READINGS: usize = 3;
const MAX_PART_CHARS: usize = 60;
const MAX_VALUE_CHARS: usize = 120;

/// An answer as expressions see it: the fields of the artifact, with payloads from assets inlined.
#[derive(Debug)]
pub(super) struct View {
    final_output: Value,
    proposed_actions: Value,
    events: Value,
}

impl View {
    pub(super) fn new(loaded: &LoadedAnswer) -> Self {
        let answer = &loaded.answer;
        // Serialising our own types cannot fail, so the default is never used.
        let mut events = serde_json::to_value(&answer.events).unwrap_or_default();
        let listed = events.as_array_mut().into_iter().flatten();
        // An expression must not depend on whether a payload is inline or stored as an asset.
        for (index, (event, known)) in listed.zip(&answer.events).enumerate() {
            let field = match &known.body {
                EventBody::ToolResult(result) if result.payload_asset_href.is_some() => "payload_summary",
                EventBody::Retrieval(found) if found.snippets_asset_href.is_some() => "snippets",
                _ => continue,
            };
            if let (Some(payload), Some(event)) = (loaded.payload(index), event.as_object_mut()) {
                event.insert(field.to_owned(), payload.to_value());
            }
        }
        Self {
            final_output: serde_json::to_value(&answer.final_output).unwrap_or_default(),
            proposed_actions: serde_json::to_value(&answer.proposed_actions).unwrap_or_default(),
            events,
        }
    }
}

pub(super) fn expected(expect: &Expect) -> String {
    let source = format!("`{}`", text::one_line(expect.expression.source(), MAX_SOURCE_CHARS));
    match &expect.name {
        Some(name) => format!("{}: {source}", text::one_line(name, MAX_SOURCE_CHARS)),
        None => source,
    }
}

pub(super) fn judge(expect: &Expect, view: &View, input: &Value) -> Judgement {
    let called = match &expect.name {
        // Messages start with the name.
        Some(_) => "it".to_owned(),
        None => format!("`{}`", text::one_line(expect.expression.source(), MAX_SOURCE_CHARS)),
    };
    // In the order of `counterproof_cases::VARIABLES`.
    let variables = [&view.final_output, &view.proposed_actions, &view.events, input];
    match expect.expression.evaluate(&variables) {
        Outcome::True => Judgement::Met("it is true".to_owned()),
        Outcome::False => Judgement::Unmet(match (read(expect, &variables), &expect.name) {
            (None, _) => format!("{called} is false"),
            // The expression is known to be false from the values.
            (Some(found), Some(_)) => found,
            (Some(found), None) => format!("{called} is false: {found}"),
        }),
        Outcome::Failed(why) => Judgement::Unmet(format!("{called} failed: {}", text::one_line(&why.message, 200))),
        Outcome::TooLong => Judgement::Undecided(format!("{called} takes more than {MAX_STEPS} steps")),
    }
}

/// What an expression that is false found: `final_output.content.total is 50`. `None` if it reads no short values.
fn read(expect: &Expect, variables: &[&Value]) -> Option<String> {
    let source = expect.expression.source();
    let found = expect.expression.readings(variables, MAX_READINGS).into_iter().map(|reading| {
        let part = text::one_line(&source[reading.span], MAX_PART_CHARS);
        format!("{part} is {}", text::one_line(&reading.value, MAX_VALUE_CHARS))
    });
    let found: Vec<_> = found.collect();
    (!found.is_empty()).then(|| found.join(", "))
}
