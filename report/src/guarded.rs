//! The page of guarded runs: the tool calls of a ledger with their decisions and rules, refused calls first. The caller reads the
//! ledger; texts of agents are shown as texts.

use std::collections::BTreeMap;

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::one_line;
use counterproof_evaluator::text;

use crate::folder::{COMMON_FILES, FolderKind, ReportError, publish_page};
use crate::view::display;

const FOLDER: FolderKind = FolderKind::of_page(
    "a page of guarded runs",
    "Guarded runs of Counterproof. The next page that is written here replaces it. Open index.html.\n",
    &COMMON_FILES,
);

/// Longest arguments, result or reason, in characters.
const LONGEST_TEXT: usize = 300;

/// Longest name, in characters.
const LONGEST_NAME: usize = 80;

/// What became of a call, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Refused,
    /// A policy in observe mode would have refused it.
    WouldRefuse,
    Failed,
    /// It has no end.
    Open,
    Succeeded,
}

impl Outcome {
    const ALL: [Outcome; 5] =
        [Outcome::Refused, Outcome::WouldRefuse, Outcome::Failed, Outcome::Open, Outcome::Succeeded];

    /// The class of its chip, its sign and its word.
    const fn view(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Outcome::Refused => ("worse", "✗", "refused"),
            Outcome::WouldRefuse => ("different", "!", "would be refused"),
            Outcome::Failed => ("failed", "✗", "failed"),
            Outcome::Open => ("different", "?", "no end"),
            Outcome::Succeeded => ("same", "✓", "allowed"),
        }
    }

    /// The anchor and the heading of its calls.
    const fn list(self) -> (&'static str, &'static str) {
        match self {
            Outcome::Refused => ("refused", "Refused calls"),
            Outcome::WouldRefuse => ("would-refuse", "Calls that a policy in observe mode would have refused"),
            Outcome::Failed => ("failed", "Failed calls"),
            Outcome::Open => ("open", "Calls without an end"),
            Outcome::Succeeded => ("allowed", "Allowed calls"),
        }
    }
}

/// A guarded call.
#[derive(Debug, Clone)]
pub struct GuardedCall {
    pub time: String,
    pub run_id: String,
    pub call_id: String,
    pub server: Option<String>,
    pub tool: Option<String>,
    pub outcome: Outcome,
    /// The decision as the ledger names it.
    pub decision: Option<String>,
    pub rule: Option<String>,
    /// Why it was refused or failed.
    pub reason: Option<String>,
    pub arguments: Option<String>,
    pub result: Option<String>,
    pub latency_ms: Option<i64>,
}

/// A guarded run.
#[derive(Debug, Clone)]
pub struct GuardedRun {
    pub run_id: String,
    pub started: String,
    pub agent: Option<String>,
    pub status: String,
    pub calls: u64,
    pub refused: u64,
    pub errors: u64,
}

#[derive(Debug, Template)]
#[template(path = "guarded/page.html")]
struct GuardedPage {
    root: &'static str,
    class: &'static str,
    headline: String,
    note: String,
    lists: Vec<CallList>,
    rules: Vec<RuleView>,
    runs: Vec<GuardedRun>,
}

#[derive(Debug)]
struct CallList {
    id: &'static str,
    heading: String,
    /// Whether it is folded: calls that need no look.
    is_folded: bool,
    calls: Vec<CallView>,
}

#[derive(Debug)]
struct CallView {
    time: String,
    run: String,
    call: String,
    tool: String,
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    decision: String,
    rule: String,
    reason: String,
    arguments: String,
    result: String,
    latency: String,
}

#[derive(Debug)]
struct RuleView {
    rule: String,
    refused: usize,
    observed: usize,
    allowed: usize,
}

/// Writes the page into a folder, refused calls first. Returns its path. `is_cut` is true where the ledger has more calls.
pub fn write_guarded_runs(
    out: &Utf8Path,
    runs: &[GuardedRun],
    calls: &[GuardedCall],
    is_cut: bool,
) -> Result<Utf8PathBuf, ReportError> {
    let staged = FOLDER.begin(out)?;
    publish_page(staged, out, &GuardedPage::new(runs, calls, is_cut))
}

impl GuardedPage {
    fn new(runs: &[GuardedRun], calls: &[GuardedCall], is_cut: bool) -> Self {
        let of = |outcome: Outcome| calls.iter().filter(move |call| call.outcome == outcome);
        let (refused, observed) = (of(Outcome::Refused).count(), of(Outcome::WouldRefuse).count());
        let all = text::count(calls.len(), "call", "calls");
        let of_runs = text::count(runs.len(), "run", "runs");
        let (class, headline) = match (refused, observed) {
            (0, 0) => ("go", format!("None of {all} was refused in {of_runs}")),
            (0, observed) => ("open", format!("{observed} of {all} would be refused in {of_runs}")),
            (refused, _) => ("open", format!("{refused} of {all} refused in {of_runs}")),
        };
        let list = |outcome: Outcome| {
            let (id, heading) = outcome.list();
            let calls: Vec<_> = of(outcome).map(call_view).collect();
            let is_folded = outcome == Outcome::Succeeded;
            CallList { id, heading: format!("{heading}: {}", display::number(calls.len() as u64)), is_folded, calls }
        };
        let more = "The ledger has more calls, of which the latest are listed; refused calls are selected first.";
        Self {
            root: "",
            class,
            headline,
            note: if is_cut { more.to_owned() } else { String::new() },
            lists: Outcome::ALL.into_iter().map(list).filter(|list| !list.calls.is_empty()).collect(),
            rules: rules(calls),
            runs: runs.iter().map(visible_run).collect(),
        }
    }
}

/// The rules that decided, those with the most refusals first.
fn rules(calls: &[GuardedCall]) -> Vec<RuleView> {
    let mut rules: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for call in calls {
        let Some(rule) = &call.rule else { continue };
        let column = match call.outcome {
            Outcome::Refused => 0,
            Outcome::WouldRefuse => 1,
            Outcome::Failed | Outcome::Succeeded | Outcome::Open => 2,
        };
        rules.entry(rule).or_default()[column] += 1;
    }
    let view = |(rule, [refused, observed, allowed]): (&str, [usize; 3])| RuleView {
        rule: one_line(rule, LONGEST_NAME),
        refused,
        observed,
        allowed,
    };
    let mut rules: Vec<_> = rules.into_iter().map(view).collect();
    // A stable sort: equal rules stay in the order of their names.
    rules.sort_by_key(|rule| std::cmp::Reverse((rule.refused, rule.observed)));
    rules
}

fn call_view(call: &GuardedCall) -> CallView {
    let (class, sign, word) = call.outcome.view();
    let shown = |text: &Option<String>, most| text.as_deref().map(|text| one_line(text, most)).unwrap_or_default();
    let name =
        |text: &Option<String>| text.as_deref().map_or("unknown".to_owned(), |text| one_line(text, LONGEST_NAME));
    CallView {
        time: one_line(&call.time, LONGEST_NAME),
        run: one_line(&call.run_id, LONGEST_NAME),
        call: one_line(&call.call_id, LONGEST_NAME),
        tool: format!("{}.{}", name(&call.server), name(&call.tool)),
        class,
        sign,
        word,
        decision: shown(&call.decision, LONGEST_NAME),
        rule: shown(&call.rule, LONGEST_NAME),
        reason: shown(&call.reason, LONGEST_TEXT),
        arguments: shown(&call.arguments, LONGEST_TEXT),
        result: shown(&call.result, LONGEST_TEXT),
        latency: call.latency_ms.map(|millis| format!("{millis} ms")).unwrap_or_default(),
    }
}

fn visible_run(run: &GuardedRun) -> GuardedRun {
    let name = |text: &str| one_line(text, LONGEST_NAME);
    GuardedRun {
        run_id: name(&run.run_id),
        started: name(&run.started),
        agent: run.agent.as_deref().map(name),
        status: name(&run.status),
        calls: run.calls,
        refused: run.refused,
        errors: run.errors,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(outcome: Outcome, rule: &str) -> GuardedCall {
        GuardedCall {
            time: "2026-11-01T01:00:00.000Z".to_owned(),
            run_id: "r".to_owned(),
            call_id: format!("{outcome:?}"),
            server: Some("shop".to_owned()),
            tool: Some("<b>refund</b>".to_owned()),
            outcome,
            decision: Some("BLOCK".to_owned()),
            rule: Some(rule.to_owned()),
            reason: Some("<script>alert(1)</script>\n\u{202e}".to_owned()),
            arguments: Some(r#"{"amount": 500}"#.to_owned()),
            result: None,
            latency_ms: Some(3),
        }
    }

    #[test]
    fn refused_calls_are_first_and_texts_of_agents_are_texts() {
        let calls = [call(Outcome::Succeeded, "open"), call(Outcome::Failed, "open"), call(Outcome::Refused, "limit")];
        let page = GuardedPage::new(&[], &calls, false).render().unwrap();
        let at = |id: &str| page.find(&format!("id=\"{id}\"")).unwrap();
        assert!(at("refused") < at("failed") && at("failed") < at("allowed"), "{page}");
        assert!(page.contains("1 of 3 calls refused in 0 runs"), "{page}");
        assert!(!page.contains("<script") && !page.contains("<b>refund") && !page.contains('\u{202e}'), "{page}");
        assert!(!page.contains("style=") && page.contains("&#60;b&#62;refund"), "{page}");
        let rules: Vec<_> = rules(&calls).into_iter().map(|rule| (rule.rule, rule.refused, rule.allowed)).collect();
        assert_eq!(rules, [("limit".to_owned(), 1, 0), ("open".to_owned(), 0, 2)]);
    }
}
