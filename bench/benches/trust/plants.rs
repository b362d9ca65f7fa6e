//! Faults and harmless changes that are put into real runs: which of them the program shows.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Answer, Case, Content, EventBody, EvidenceTarget, Outcome as CaseOutcome, ProposedAction};
use counterproof_bench::{Outcome, corpus};
use counterproof_evaluator::Fault;
use serde_json::{Map, Value};

/// Most cases of a run that get a change of one kind, spread evenly. All others stay as they are.
const CHANGED: usize = 20;

/// Returns an answer with a change; `None` if it offers nothing to change.
type Change = fn(&Answer) -> Option<Answer>;

/// Changes that no reviewer wants to hear of.
const HARMLESS: [(&str, Change); 6] = [
    ("closing words", closing_words),
    ("call ids", call_ids),
    ("order of keys", order_of_keys),
    ("form of numbers", form_of_numbers),
    ("lookup repeated", lookup_repeated),
    ("lookups swapped", lookups_swapped),
];

/// Puts each kind of change into the first run of each side of each pair, and prints how many of the changed cases are shown.
pub(crate) fn run(program: &Utf8Path, folder: &Utf8Path) -> Outcome {
    let runs = runs(folder)?;
    let mut out = io::stdout().lock();
    let _ = writeln!(
        out,
        "\nplanted: {} real runs, each compared with a copy in which up to {CHANGED} answers are changed; no expectations, not\n\
         declared deterministic. Shown: the case is regressed, broken or undecided, or has a review item\n",
        runs.len()
    );
    let faults = Fault::ALL.iter().map(|fault| (fault.to_string(), Kind::Fault(*fault)));
    let harmless = HARMLESS.map(|(name, change)| (name.to_owned(), Kind::Harmless(change)));
    for (name, kind) in faults.into_iter().chain(harmless) {
        let mut planted: BTreeMap<ChangedPart, Vec<Planted>> = BTreeMap::new();
        for run in &runs {
            for one in plant(program, run, kind)? {
                planted.entry(one.part).or_default().push(one);
            }
        }
        for (part, all) in planted {
            let shown = all.iter().filter(|one| one.is_shown).count();
            let share = 100.0 * shown as f64 / all.len() as f64;
            let is_wrong = |one: &&Planted| one.is_shown != matches!(kind, Kind::Fault(_));
            let wrong: Vec<_> = all.iter().filter(is_wrong).take(3).map(|one| one.name.as_str()).collect();
            let class = if matches!(kind, Kind::Fault(_)) { "fault" } else { "harmless" };
            let _ = writeln!(
                out,
                "{class:<9}{name:<16} {:<7} shown {shown:>4} of {:<4} ({share:>5.1} %)  {}",
                part.name(),
                all.len(),
                wrong.join(", ")
            );
        }
    }
    Ok(())
}

/// A changed answer.
struct Planted {
    /// The run and the case.
    name: String,
    part: ChangedPart,
    is_shown: bool,
}

/// What differs. A proposed action has an effect; a lookup of something else may be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ChangedPart {
    Action,
    Call,
    Text,
    /// Nothing that has a meaning, such as ids of calls and the order of keys.
    Form,
}

impl ChangedPart {
    fn between(original: &Answer, changed: &Answer) -> Self {
        let actions = |answer: &Answer| -> Vec<_> {
            let facts =
                |action: &ProposedAction| (action.tool_name.clone(), action.params.clone(), action.evidence_refs.len());
            answer.proposed_actions.iter().map(facts).collect()
        };
        let calls = |answer: &Answer| -> Vec<_> {
            let calls = answer.events.iter().filter_map(counterproof_artifact::Event::tool_call);
            calls.map(|call| (call.tool.clone(), call.args.clone())).collect()
        };
        if actions(original) != actions(changed) {
            ChangedPart::Action
        } else if calls(original) != calls(changed) {
            ChangedPart::Call
        } else if original.final_output.content != changed.final_output.content {
            ChangedPart::Text
        } else {
            ChangedPart::Form
        }
    }

    const fn name(self) -> &'static str {
        match self {
            ChangedPart::Action => "action",
            ChangedPart::Call => "call",
            ChangedPart::Text => "text",
            ChangedPart::Form => "form",
        }
    }
}

/// The first run of each side of each pair of the corpus.
fn runs(folder: &Utf8Path) -> Outcome<Vec<Utf8PathBuf>> {
    let mut found = Vec::new();
    for pair in corpus::pairs(folder)? {
        for side in ["baseline", "new"] {
            let side = folder.join(&pair).join("runs").join(side);
            found.extend(corpus::names(&side)?.first().map(|run| side.join(run)));
        }
    }
    Ok(found)
}

#[derive(Clone, Copy)]
enum Kind {
    Fault(Fault),
    Harmless(Change),
}

impl Kind {
    fn change(self, answer: &Answer) -> Option<Answer> {
        match self {
            Kind::Fault(fault) => fault.put_into(answer),
            Kind::Harmless(change) => change(answer),
        }
    }
}

/// Changes answers of a run, compares it with the original, and returns the changed cases.
fn plant(program: &Utf8Path, run: &Utf8Path, kind: Kind) -> Outcome<Vec<Planted>> {
    let scratch = tempfile::tempdir()?;
    let scratch = Utf8Path::from_path(scratch.path()).ok_or("the path of the temporary folder is not UTF-8")?;
    let copy = scratch.join("copy");
    copy_folder(run, &copy)?;
    let mut changed = Vec::new();
    for path in artifacts(run)? {
        // `run.json` and `evaluation.json` are no cases.
        let Ok(case) = serde_json::from_slice::<Case>(&fs::read(&path)?) else { continue };
        let CaseOutcome::Ok(answer) = &case.outcome else { continue };
        if let Some(other) = kind.change(answer) {
            let part = ChangedPart::between(answer, &other);
            changed.push((part, Case { outcome: CaseOutcome::Ok(other), ..case }));
        }
    }
    let step = changed.len().div_ceil(CHANGED).max(1);
    let chosen: Vec<_> = changed.into_iter().step_by(step).collect();
    for (_, case) in &chosen {
        write(&copy.join(format!("{}.json", case.case_id)), &serde_json::to_vec(case)?)?;
    }
    let evaluation = corpus::compare(program, scratch, &[run.to_owned()], &[copy])?.evaluation;
    let is_shown = |id: &str| {
        let row = corpus::list(&evaluation["cases"]).find(|row| row["case_id"] == id);
        let verdict = row.map_or("", |row| corpus::text(&row["verdict"]));
        ["regressed", "broken", "undecided"].contains(&verdict)
            || corpus::list(&evaluation["gate"]["review"]).any(|item| item["case_id"] == id)
    };
    let planted = |(part, case): (ChangedPart, Case)| Planted {
        name: format!("{}/{}", run.file_name().unwrap_or_default(), case.case_id),
        part,
        is_shown: is_shown(case.case_id.as_str()),
    };
    Ok(chosen.into_iter().map(planted).collect())
}

fn artifacts(run: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let files = run.read_dir_utf8()?.filter_map(Result::ok).map(camino::Utf8DirEntry::into_path);
    let mut files: Vec<_> = files.filter(|path| path.extension() == Some("json")).collect();
    files.sort_unstable();
    Ok(files)
}

fn copy_folder(from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in from.read_dir_utf8()?.filter_map(Result::ok) {
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(entry.path(), &to)?;
        } else {
            write(&to, &fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a temporary file of this measurement need not survive a crash")]
fn write(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(path, bytes)
}

fn closing_words(answer: &Answer) -> Option<Answer> {
    let Content::Text(text) = &answer.final_output.content else { return None };
    let mut changed = answer.clone();
    changed.final_output.content =
        Content::Text(format!("{} Is there anything else I can help with?", text.trim_end()));
    changed.final_output.output_hash = Some(changed.final_output.content.short_hash());
    Some(changed)
}

fn call_ids(answer: &Answer) -> Option<Answer> {
    answer.events.iter().any(|event| event.tool_call().is_some()).then_some(())?;
    let mut changed = answer.clone();
    for event in &mut changed.events {
        match &mut event.body {
            EventBody::ToolCall(call) => call.call_id.insert_str(0, "other_"),
            EventBody::ToolResult(result) => result.call_id.insert_str(0, "other_"),
            _ => {}
        }
    }
    for evidence in changed.proposed_actions.iter_mut().flat_map(|action| &mut action.evidence_refs) {
        if let EvidenceTarget::ToolResult { call_id } = &mut evidence.target {
            call_id.insert_str(0, "other_");
        }
    }
    Some(changed)
}

fn order_of_keys(answer: &Answer) -> Option<Answer> {
    let (mut changed, mut is_changed) = (answer.clone(), false);
    let mut reverse = |fields: &mut Map<String, Value>| {
        is_changed |= fields.len() > 1;
        *fields = std::mem::take(fields).into_iter().rev().collect();
    };
    each_arguments(&mut changed, &mut reverse);
    is_changed.then_some(changed)
}

fn form_of_numbers(answer: &Answer) -> Option<Answer> {
    let (mut changed, mut is_changed) = (answer.clone(), false);
    let mut as_float = |fields: &mut Map<String, Value>| {
        for value in fields.values_mut() {
            if let Some(number) = value.as_i64() {
                (*value, is_changed) = (Value::from(number as f64), true);
            }
        }
    };
    each_arguments(&mut changed, &mut as_float);
    is_changed.then_some(changed)
}

fn each_arguments(answer: &mut Answer, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    for event in &mut answer.events {
        if let EventBody::ToolCall(call) = &mut event.body {
            change(&mut call.args);
        }
    }
    for action in &mut answer.proposed_actions {
        change(&mut action.params);
    }
}

/// The positions of the lookups: a call of a tool without an action, directly followed by its result.
fn lookups(answer: &Answer) -> Vec<usize> {
    let is_write = |tool: &str| answer.proposed_actions.iter().any(|action| action.tool_name == tool);
    let is_lookup = |pair: &[counterproof_artifact::Event]| {
        let Some(call) = pair[0].tool_call().filter(|call| !is_write(&call.tool)) else { return false };
        matches!(&pair[1].body, EventBody::ToolResult(result) if result.call_id == call.call_id)
    };
    answer.events.windows(2).enumerate().filter(|(_, pair)| is_lookup(pair)).map(|(at, _)| at).collect()
}

fn lookup_repeated(answer: &Answer) -> Option<Answer> {
    let at = *lookups(answer).first()?;
    let mut again = answer.events[at..at + 2].to_vec();
    for event in &mut again {
        match &mut event.body {
            EventBody::ToolCall(call) => call.call_id.push_str("_again"),
            EventBody::ToolResult(result) => result.call_id.push_str("_again"),
            _ => {}
        }
    }
    let mut changed = answer.clone();
    changed.events.splice(at + 2..at + 2, again);
    Some(changed)
}

fn lookups_swapped(answer: &Answer) -> Option<Answer> {
    let lookups = lookups(answer);
    let at = lookups.windows(2).find(|pair| pair[1] == pair[0] + 2)?[0];
    let [first, second] = [at, at + 2].map(|at| answer.events[at].tool_call());
    let (first, second) = (first?, second?);
    // The second may use what the first returns.
    let EventBody::ToolResult(returned) = &answer.events[at + 1].body else { return None };
    let returned = format!("{:?}", returned.payload_summary);
    let given = Value::from(second.args.clone()).to_string();
    let words = given.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3);
    let is_used = words.filter(|word| !second.args.contains_key(*word)).any(|word| returned.contains(word));
    if is_used || (first.tool == second.tool && first.args == second.args) {
        return None;
    }
    let mut changed = answer.clone();
    changed.events[at..at + 4].rotate_left(2);
    // Times still rise.
    for (event, original) in changed.events[at..at + 4].iter_mut().zip(&answer.events[at..at + 4]) {
        event.ts = original.ts.clone();
    }
    Some(changed)
}
