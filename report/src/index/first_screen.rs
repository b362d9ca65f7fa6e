//! The first screen: the decision, what questions the comparison itself, the worst case, and the numbers of all cases.

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Harm, SidePointer};
use counterproof_artifact::{CaseId, Side};
use counterproof_evaluator::evaluation_text::{self, TableRow};
use counterproof_evaluator::{
    Decision, DecisionKind, RankedCase, Standing, gate_qualifications, is_alone, messages, more_runs, review_lines,
    text, wanted_baseline_runs, worst_first,
};

use super::case_lists::{ALL, CaseLists, UNCONFIRMED, notice_slug, rule_slug, unconfirmed};
use crate::case;
use crate::site::Site;
use crate::view::display;
use crate::view::word::{self, Circumstances, Word};

/// A rule with more cases links to their list.
const LINKED: usize = 5;

/// Maximum number of remarks about all cases together.
const REMARKS: usize = 3;

/// Maximum number of links to evidence.
const EVIDENCE: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct VerdictCard {
    /// The CSS class: `stop`, `open` or `go`.
    pub(crate) class: &'static str,
    pub(crate) headline: String,
    pub(crate) why: String,
    pub(crate) rules: Vec<RuleLine>,
    /// The cases that look worse, where no rule counts cases.
    pub(crate) unconfirmed: Option<RuleLine>,
    /// What limits the decision, and what a person should know of all cases together.
    pub(crate) remarks: Vec<String>,
    /// What to do next, and the commands for it; empty where the decision is final.
    pub(crate) next: &'static str,
    pub(crate) commands: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct RuleLine {
    pub(crate) sentence: String,
    pub(crate) cases: Vec<CaseLink>,
    /// The list of all cases, if not all are linked: its text and path.
    pub(crate) list: Option<ListLink>,
}

#[derive(Debug, Clone)]
pub(crate) struct CaseLink {
    pub(crate) case_id: String,
    pub(crate) href: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct ListLink {
    pub(crate) text: String,
    pub(crate) path: String,
    pub(crate) slug: String,
}

pub(crate) fn verdict_card(
    site: &Site<'_>,
    evaluation: &Evaluation,
    decision: &Decision,
    lists: &CaseLists<'_>,
) -> VerdictCard {
    let line = |sentence: &str, ids: &[CaseId], slug: &str| {
        let is_long = ids.len() > LINKED;
        let list = lists.get(slug).filter(|_| is_long);
        RuleLine {
            sentence: text::first_upper(&display::visible(sentence)),
            cases: ids
                .iter()
                .take(if is_long { 3 } else { LINKED })
                .map(|id| case_link(site, evaluation, id))
                .collect(),
            list: list.map(|list| ListLink {
                text: format!("all {}", display::number(list.cases.len() as u64)),
                path: list.path(),
                slug: list.slug.clone(),
            }),
        }
    };
    let rules = decision.violated.iter().enumerate();
    // The headline says a rule without cases already.
    let rules = rules.filter(|(_, rule)| !rule.case_ids.is_empty() || !decision.headline.contains(&rule.sentence));
    let rules = rules.map(|(index, rule)| line(&rule.sentence, &rule.case_ids, &rule_slug(index))).collect();
    let unconfirmed = &decision.unconfirmed;
    let looks = if unconfirmed.len() == 1 { "looks worse, not confirmed" } else { "look worse, none confirmed" };
    let (next, commands) = next(evaluation, decision);
    VerdictCard {
        class: match decision.kind {
            DecisionKind::Stop => "stop",
            DecisionKind::Open => "open",
            DecisionKind::Go => "go",
        },
        headline: display::visible(&decision.headline),
        why: display::visible(&decision.why),
        rules,
        unconfirmed: (!unconfirmed.is_empty()).then(|| line(looks, unconfirmed, UNCONFIRMED)),
        remarks: remarks(evaluation),
        next,
        commands,
    }
}

fn remarks(evaluation: &Evaluation) -> Vec<String> {
    let lines = review_lines(evaluation, usize::MAX).into_iter().filter(|line| line.case_id.is_none());
    let of_all = lines.take(REMARKS).map(|line| format!("{}: {}", text::first_upper(&line.kind), line.message));
    gate_qualifications(evaluation).into_iter().chain(of_all).map(|remark| display::visible(&remark)).collect()
}

/// What gets a decision, where there is none.
fn next(evaluation: &Evaluation, decision: &Decision) -> (&'static str, Vec<String>) {
    let baseline = |runs: usize| format!("counterproof run --side baseline --repeat {runs}");
    let more_baseline = baseline(wanted_baseline_runs(evaluation));
    if is_alone(evaluation) {
        return ("Make this run the baseline:", vec!["counterproof accept --reason \"first baseline\"".to_owned()]);
    }
    match (decision.kind, &evaluation.repeats, more_runs(evaluation)) {
        (DecisionKind::Stop | DecisionKind::Go, ..) => ("", Vec::new()),
        (DecisionKind::Open, None, _) => {
            ("Run each side several times:", vec![more_baseline, "counterproof check --repeat 3".to_owned()])
        }
        (DecisionKind::Open, Some(_), None) => {
            ("Run the baseline more often:", vec![more_baseline, "counterproof check".to_owned()])
        }
        (DecisionKind::Open, Some(repeats), Some(more)) => {
            let more = usize::try_from(more).unwrap_or(usize::MAX);
            let [baseline_runs, new_runs] =
                [&repeats.baseline, &repeats.new].map(|runs| runs.len().saturating_add(more));
            let commands = vec![baseline(baseline_runs), format!("counterproof check --repeat {new_runs}")];
            ("Run each side more often:", commands)
        }
    }
}

fn case_link(site: &Site<'_>, evaluation: &Evaluation, id: &CaseId) -> CaseLink {
    let case = evaluation.cases.iter().find(|case| case.case_id == *id);
    CaseLink { case_id: id.to_string(), href: case.and_then(|case| site.case_href(case)) }
}

/// A notice on the comparison itself, with the list of its cases.
#[derive(Debug, Clone)]
pub(crate) struct NoticeView {
    pub(crate) message: String,
    pub(crate) list: Option<ListLink>,
}

pub(crate) fn notices(evaluation: &Evaluation, lists: &CaseLists<'_>) -> Vec<NoticeView> {
    let view = |notice: &counterproof_artifact::evaluation::Notice| {
        let list = lists.get(&notice_slug(&notice.code));
        NoticeView {
            message: text::first_upper(&display::visible(&notice.message)),
            list: list.map(|list| ListLink {
                text: text::count(list.cases.len(), "case", "cases"),
                path: list.path(),
                slug: list.slug.clone(),
            }),
        }
    };
    let unused = evaluation.rules.iter().filter(|used| used.matched == 0).map(|used| NoticeView {
        message: format!("Comparison rule without matches: {}", display::visible(&used.rule)),
        list: None,
    });
    evaluation.notices.iter().map(view).chain(unused).collect()
}

/// The most harmful case.
#[derive(Debug, Clone)]
pub(crate) struct WorstView {
    pub(crate) heading: String,
    pub(crate) case: CaseLink,
    pub(crate) asked: String,
    pub(crate) baseline: SideStory,
    pub(crate) new: SideStory,
    pub(crate) is_alone: bool,
    /// Which evidence a write lacks; otherwise empty, because the heading says it.
    pub(crate) why: String,
    pub(crate) chance: String,
    /// The evidence: its text and its link.
    pub(crate) evidence: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub(crate) struct SideStory {
    /// The answer; empty without one.
    pub(crate) said: String,
    /// What the side did, or why it has no answer.
    pub(crate) did: String,
}

pub(crate) fn worst(site: &Site<'_>, evaluation: &Evaluation, decision: &Decision) -> Option<WorstView> {
    let id = decision.worst.as_ref()?;
    let ranked = worst_first(evaluation).into_iter().find(|ranked| ranked.case.case_id == *id)?;
    let case = ranked.case;
    let href = site.case_href(case);
    let what = messages::effects(&case.story).unwrap_or_else(|| evaluation_text::case_line(evaluation, &ranked));
    Some(WorstView {
        heading: format!(
            "{}: {}",
            if decision.kind == DecisionKind::Go { "Largest difference" } else { "Worst" },
            display::visible(what.trim_end_matches('.'))
        ),
        case: case_link(site, evaluation, id),
        asked: display::visible(case.story.asked.as_deref().unwrap_or_default()),
        baseline: side_story(case, Side::Baseline),
        new: side_story(case, Side::New),
        is_alone: is_alone(evaluation),
        why: match case.story.harm() {
            Some(Harm::WriteWithoutEvidence) => {
                display::visible(evaluation_text::main_reason(case).unwrap_or_default())
            }
            _ => String::new(),
        },
        chance: chance(evaluation, &ranked),
        evidence: href.map(|href| evidence(case, &href)).unwrap_or_default(),
    })
}

/// Whether the case may be chance. Where the gate fails by all cases together, this one may still be.
fn chance(evaluation: &Evaluation, ranked: &RankedCase<'_>) -> String {
    let fell = evaluation.gate.rules.iter().any(|rule| rule.code == "suite_fell" && !rule.passed);
    let chance = word::chance(ranked.case, Circumstances::of(evaluation));
    match &ranked.case.repeats {
        _ if !fell || ranked.standing != Standing::Unconfirmed => chance,
        None => "Unknown: each side ran once. Over all cases: not chance.".to_owned(),
        Some(_) => format!("{chance} Over all cases: not chance."),
    }
}

/// What a side answered and did.
pub(crate) fn side_story(case: &CaseEvaluation, side: Side) -> SideStory {
    let story = &case.story;
    let usage = case.usage.as_ref();
    let (said, writes, usage) = match side {
        Side::Baseline => {
            (&story.baseline_said, story.baseline_writes, usage.and_then(|usage| usage.baseline.as_ref()))
        }
        Side::New => (&story.new_said, story.new_writes, usage.and_then(|usage| usage.new.as_ref())),
    };
    let steps = usage.map(|usage| {
        messages::usage::amount(counterproof_artifact::evaluation::UsageCode::Steps, usage.steps.value(), None)
    });
    let did = match (&steps, said) {
        (Some(steps), _) => {
            let calls = if steps == "1" { "1 call".to_owned() } else { format!("{steps} calls") };
            let wrote = match writes {
                0 => "changed nothing".to_owned(),
                1 => "1 write".to_owned(),
                writes => format!("{writes} writes"),
            };
            format!("{calls}, {wrote}")
        }
        (None, Some(_)) => String::new(),
        (None, None) => "no answer".to_owned(),
    };
    SideStory { said: display::visible(said.as_deref().unwrap_or_default()), did }
}

/// Links to the steps that show the difference.
fn evidence(case: &CaseEvaluation, href: &str) -> Vec<(String, String)> {
    let reasons = case.reasons.iter().flat_map(|reason| &reason.pointers);
    let divergence = case.first_divergence.iter().flat_map(|divergence| &divergence.pointers);
    let mut links: Vec<(String, String)> = Vec::new();
    // The quoted answers last, where the reasons do not point to them.
    let said = [(Side::Baseline, &case.story.baseline_said), (Side::New, &case.story.new_said)];
    let answers = said.into_iter().filter_map(|(side, said)| said.as_ref().map(|_| answer(side)));
    for (text, anchor) in reasons.chain(divergence).filter_map(place).chain(answers) {
        let link = (text, format!("{href}#{anchor}"));
        if !links.contains(&link) {
            links.push(link);
        }
        if links.len() == EVIDENCE {
            break;
        }
    }
    links
}

/// The name of a place and its anchor on the case page.
fn place(pointer: &SidePointer) -> Option<(String, String)> {
    let side = pointer.side;
    match pointer.entry() {
        ("events", Some(index)) => Some((format!("{side} step {}", index + 1), case::event(side, index))),
        ("proposed_actions", Some(index)) => Some((format!("{side} action {}", index + 1), case::action(side, index))),
        ("runner_failure", _) => Some((format!("{side} runner error"), case::failure(side))),
        ("final_output", _) => Some(answer(side)),
        _ => None,
    }
}

fn answer(side: Side) -> (String, String) {
    (format!("{side} answer"), "output".to_owned())
}

const BAR_WIDTH: u64 = 1000;

/// The minimum width of a part, so that a single case is visible.
const BAR_LEAST: u64 = 8;

#[derive(Debug, Clone)]
pub(crate) struct BarPart {
    pub(crate) word: Word,
    pub(crate) count: String,
    /// How many of the cases are unconfirmed; empty if none is.
    pub(crate) unconfirmed: String,
    pub(crate) x: u64,
    pub(crate) width: u64,
    pub(crate) list: String,
}

/// The bar of words, worst first, with the list of each.
pub(crate) fn bar(lists: &CaseLists<'_>) -> Vec<BarPart> {
    let parts: Vec<_> = Word::ALL.into_iter().filter_map(|word| Some((word, lists.get(word.class())?))).collect();
    let total: usize = parts.iter().map(|(_, list)| list.cases.len()).sum();
    let width = |count: usize| (count as u64 * BAR_WIDTH / total.max(1) as u64).max(BAR_LEAST);
    let sum: u64 = parts.iter().map(|(_, list)| width(list.cases.len())).sum();
    let mut x = 0;
    let mut bar = Vec::new();
    for (word, list) in parts {
        let end = x + width(list.cases.len());
        // Scaled to the sum, because of rounding and minimum widths, so that the parts always fill the bar.
        let (from, to) = (x * BAR_WIDTH / sum, end * BAR_WIDTH / sum);
        bar.push(BarPart {
            word,
            count: display::number(list.cases.len() as u64),
            unconfirmed: unconfirmed(&list.cases),
            x: from,
            width: to - from,
            list: list.path(),
        });
        x = end;
    }
    bar
}

/// A chip above the rows: a list that filters.
#[derive(Debug, Clone)]
pub(crate) struct Chip {
    pub(crate) text: String,
    pub(crate) count: String,
    pub(crate) path: String,
    pub(crate) slug: String,
    pub(crate) is_all: bool,
}

pub(crate) fn chips(lists: &CaseLists<'_>) -> Vec<Chip> {
    let chips = lists.iter().filter(|list| list.has_chip).map(|list| Chip {
        text: list.title.clone(),
        count: display::number(list.cases.len() as u64),
        path: list.path(),
        slug: list.slug.clone(),
        is_all: list.slug == ALL,
    });
    chips.collect()
}

/// The rates and quantities of both sides. What no run reports is `–`.
pub(crate) fn numbers(evaluation: &Evaluation) -> Vec<TableRow> {
    let known: Vec<_> =
        evaluation_text::table(evaluation).into_iter().chain(evaluation_text::tool_time(evaluation)).collect();
    let unknown = |name: &str| TableRow {
        name: name.to_owned(),
        baseline: "–".to_owned(),
        new: "–".to_owned(),
        change: "not recorded".to_owned(),
    };
    let shown = |row: &TableRow| TableRow { baseline: short(&row.baseline), new: short(&row.new), ..row.clone() };
    let rate = ["solved", "answered", "with evidence"];
    let solved = known.iter().find(|row| rate.iter().any(|name| row.name.starts_with(name)));
    let quantities = ["duration", "steps", "tool time", "tokens", "cost"]
        .map(|name| known.iter().find(|row| row.name.starts_with(name)).map_or_else(|| unknown(name), shown));
    std::iter::once(solved.map_or_else(|| unknown("solved"), shown)).chain(quantities).collect()
}

/// A rate without its share: `49/50` instead of `49 of 50 (98 %)`.
fn short(value: &str) -> String {
    value.split(" (").next().unwrap_or_default().replace(" of ", "/")
}
