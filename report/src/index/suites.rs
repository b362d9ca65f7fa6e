//! The page of suites: a tree of their names, each with its cases and its pass rates.

use std::collections::BTreeMap;

use askama::Template;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, ExpectationResult, Judgement, MeasureCode};
use counterproof_evaluator::is_alone;

use super::case_lists::CaseLists;
use crate::folder;
use crate::view::display;
use crate::view::word::Word;

/// The page of suites.
#[derive(Debug, Template)]
#[template(path = "lists/suites.html")]
pub(crate) struct SuitesPage {
    root: &'static str,
    is_alone: bool,
    suites: Vec<SuiteView>,
}

#[derive(Debug, Clone)]
pub(crate) struct SuiteView {
    /// The last part of the name, and how deep it is in the tree.
    pub(crate) name: String,
    pub(crate) depth: usize,
    /// The list of its cases; `None` for a name that only others are below.
    pub(crate) list: Option<String>,
    pub(crate) cases: String,
    pub(crate) worse: String,
    /// The solved runs of each side: `9 of 12`; `–` where nothing is judged.
    pub(crate) baseline: String,
    pub(crate) new: String,
}

#[derive(Default)]
struct Counted {
    cases: u64,
    worse: u64,
    /// The passed runs and all runs of baseline, then of new.
    solved: [(u64, u64); 2],
}

impl SuitesPage {
    /// The page; `None` if no case has a suite.
    pub(crate) fn new(evaluation: &Evaluation, lists: &CaseLists<'_>) -> Option<Self> {
        let alone = is_alone(evaluation);
        // By its parts, so that a suite follows the one that it is in.
        let mut suites: BTreeMap<Vec<&str>, Counted> = BTreeMap::new();
        for case in &evaluation.cases {
            let Some(suite) = case.suite.as_deref() else { continue };
            let parts: Vec<_> = suite.split('/').collect();
            for depth in 1..=parts.len() {
                suites.entry(parts[..depth].to_vec()).or_default().add(case, alone);
            }
        }
        let view = |(parts, counted): (Vec<&str>, Counted)| SuiteView {
            // A name such as `a//b` has a part without text.
            name: match parts.last().copied().unwrap_or_default() {
                "" => "(no name)".to_owned(),
                name => display::visible(name),
            },
            depth: parts.len().min(6),
            list: lists.suite(&parts.join("/")).map(|slug| folder::list_file(slug, 1)),
            cases: display::number(counted.cases),
            worse: display::number(counted.worse),
            baseline: rate(counted.solved[0]),
            new: rate(counted.solved[1]),
        };
        if suites.is_empty() {
            return None;
        }
        Some(Self { root: "../", is_alone: alone, suites: suites.into_iter().map(view).collect() })
    }
}

impl Counted {
    fn add(&mut self, case: &CaseEvaluation, is_alone: bool) {
        self.cases += 1;
        self.worse += u64::from(matches!(Word::of_case(case, is_alone), Word::Worse | Word::Failed | Word::Unmet));
        for (sum, (passed, runs)) in self.solved.iter_mut().zip(solved(case)) {
            sum.0 += passed;
            sum.1 += runs;
        }
    }
}

/// The solved runs and all runs of baseline, then of new. Of a single run, whether it meets its expectations.
fn solved(case: &CaseEvaluation) -> [(u64, u64); 2] {
    if let Some(solved) = case.measure(MeasureCode::Solved) {
        return [&solved.baseline, &solved.new].map(|rate| (rate.passed, rate.runs));
    }
    let of_side = |side: fn(&ExpectationResult) -> &Option<Judgement>| {
        let judged: Vec<_> = case.expectations.iter().filter_map(|result| side(result).as_ref()).collect();
        if judged.is_empty() { (0, 0) } else { (u64::from(judged.iter().all(|judgement| judgement.is_met())), 1) }
    };
    [of_side(|result| &result.baseline), of_side(|result| &result.new)]
}

fn rate((passed, runs): (u64, u64)) -> String {
    if runs == 0 { "–".to_owned() } else { format!("{} of {}", display::number(passed), display::number(runs)) }
}
