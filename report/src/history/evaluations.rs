//! The evaluations of a history. Of each, only a summary and the result of each case are kept.

use std::collections::{HashMap, HashSet};

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, UsageCode, Verdict};
use counterproof_artifact::{CaseId, point_in_time};
use counterproof_evaluator::{AddedCase, DecisionKind, decide, is_alone, is_unconfirmed, text, worst_first};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::files::PageNames;
use crate::folder;
use crate::site::encode_path;
use crate::view::word::{Label, Word};

const LONGEST_REASON: usize = 160;

/// The source of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvaluationSource {
    /// The folder as the user named it.
    pub folder: String,
    /// The link to the report or the evaluation file, relative to the history folder and percent-encoded; `None` without a link.
    pub href: Option<String>,
    /// The names of the files in the report's folder of case pages.
    pub case_pages: HashSet<String>,
    /// The model that the new run names.
    pub model: Option<String>,
}

/// All evaluations, in the order in which their new runs started.
#[derive(Debug, Default)]
pub struct History {
    entries: Vec<HistoryEntry>,
    ids: Vec<CaseId>,
    indexes: HashMap<CaseId, usize>,
}

#[derive(Debug)]
pub(crate) struct HistoryEntry {
    /// The start of the new run. Texts that are not a time sort before all times.
    started: (Option<i128>, String),
    pub(crate) source: EvaluationSource,
    pub(crate) time: String,
    pub(crate) baseline: String,
    pub(crate) new: String,
    pub(crate) commit: Option<String>,
    /// The number of cases by word, in the order of [`Word::ALL`].
    counts: [u64; Word::ALL.len()],
    pub(crate) gate: GateOutcome,
    /// Whether the only run of new has cases that look worse, so that a passed gate is not an all-clear.
    pub(crate) is_unconfirmed: bool,
    pub(crate) kind: DecisionKind,
    pub(crate) headline: String,
    pub(crate) duration: Option<Mean>,
    pub(crate) cost: Option<Mean>,
    /// The result of each case, the most harmful first.
    pub(crate) cases: Vec<NightCase>,
    /// The names of case pages that differ from the id, by the index of the case.
    renamed: HashMap<u32, String>,
    /// The reason of each failing case, by the index of the case.
    reasons: HashMap<u32, String>,
}

/// What a history keeps of an evaluation in addition to its cases. The files of facts contain it as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Night {
    pub(crate) time: String,
    pub(crate) baseline: String,
    pub(crate) new: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    pub(crate) gate: GateOutcome,
    /// Whether the only run of new has cases that look worse, so that a passed gate is not an all-clear.
    pub(crate) is_unconfirmed: bool,
    pub(crate) decision: DecisionKind,
    pub(crate) headline: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) duration: Option<Mean>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Mean>,
}

impl Night {
    pub(crate) fn new(evaluation: &Evaluation) -> Self {
        let new = &evaluation.new;
        let decision = decide(evaluation);
        Self {
            time: new.generated_at.clone(),
            baseline: evaluation.baseline.run_id.to_string(),
            new: new.run_id.to_string(),
            commit: new.repo_commit.clone(),
            gate: evaluation.gate.outcome,
            is_unconfirmed: is_unconfirmed(evaluation),
            decision: decision.kind,
            headline: decision.headline,
            duration: Mean::new(evaluation, UsageCode::Duration),
            cost: Mean::new(evaluation, UsageCode::Cost),
        }
    }
}

/// What a history keeps of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CaseResult {
    pub(crate) id: CaseId,
    pub(crate) label: Label,
    /// `None` where the sides were asked different things.
    pub(crate) status: Option<CaseStatus>,
    /// Why it fails, or the first reason for its verdict.
    pub(crate) reason: String,
}

impl CaseResult {
    /// `is_alone` is true where there is no baseline.
    pub(crate) fn new(case: &CaseEvaluation, is_alone: bool) -> Self {
        Self {
            id: case.case_id.clone(),
            label: Label::of_case(case, is_alone),
            status: CaseStatus::from_case(case),
            reason: reason(case),
        }
    }
}

/// The results of all cases, the most harmful first.
pub(crate) fn case_results(evaluation: &Evaluation) -> Vec<CaseResult> {
    let is_alone = is_alone(evaluation);
    worst_first(evaluation).into_iter().map(|ranked| CaseResult::new(ranked.case, is_alone)).collect()
}

/// The mean of a quantity of new per case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) currency: Option<String>,
}

impl Mean {
    fn new(evaluation: &Evaluation, code: UsageCode) -> Option<Self> {
        // The number that the index of the report shows.
        if let Some(measure) = evaluation.usage.iter().find(|measure| measure.code == code) {
            let value = measure.new.value() / measure.cases.max(1) as f64;
            return Some(Self { value, currency: measure.currency.clone() });
        }
        // Without a baseline, no quantity is compared.
        let sides: Vec<_> = evaluation.cases.iter().filter_map(|case| case.usage.as_ref()?.new.as_ref()).collect();
        let currency = sides.iter().find(|side| side.get(code).is_some())?.currency_of(code);
        let values: Vec<f64> =
            sides.iter().filter(|side| side.currency_of(code) == currency).filter_map(|side| side.get(code)).collect();
        let value = values.iter().sum::<f64>() / values.len().max(1) as f64;
        Some(Self { value, currency: currency.map(str::to_owned) })
    }
}

/// The result of a case in an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NightCase {
    /// The index of the case.
    index: u32,
    label: Label,
    /// `None` where the sides were asked different things.
    pub(crate) status: Option<CaseStatus>,
    has_page: bool,
}

impl NightCase {
    /// Whether it fails an expectation that baseline fails as well, which no word states.
    const fn is_unmet(self) -> bool {
        let is_stated = matches!(self.label.word, Word::Worse | Word::Failed | Word::NotCompared | Word::Unmet);
        matches!(self.status, Some(CaseStatus::Failing)) && !is_stated
    }

    pub(crate) const fn is_unconfirmed(self) -> bool {
        self.label.is_unconfirmed
    }

    pub(crate) const fn class(self) -> &'static str {
        if self.is_unmet() { Word::Unmet.class() } else { self.label.class() }
    }

    /// The sign. A result that may be chance has another one.
    pub(crate) const fn sign(self) -> &'static str {
        match (self.is_unconfirmed(), self.is_unmet()) {
            (true, _) => "?",
            (false, true) => Word::Unmet.sign(),
            (false, false) => self.label.sign(),
        }
    }

    /// Whether there is nothing to look at.
    pub(crate) const fn is_quiet(self) -> bool {
        is_quiet(self.label.word) && !self.is_unmet()
    }

    /// The result in words: `worse, unconfirmed`.
    pub(crate) fn text(self) -> String {
        let unconfirmed = if self.is_unconfirmed() { ", unconfirmed" } else { "" };
        let unmet = if self.is_unmet() { ", expectations not met" } else { "" };
        format!("{}{unconfirmed}{unmet}", self.label.text())
    }
}

pub(crate) const fn is_quiet(word: Word) -> bool {
    matches!(word, Word::Same | Word::Noise | Word::Met)
}

/// The status of a case in an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaseStatus {
    Passing,
    /// New is worse than baseline, has no valid answer, or does not meet its expectations.
    Failing,
}

impl HistoryEntry {
    fn new(night: Night, cases: &[CaseResult], source: EvaluationSource) -> Self {
        let Night { time, baseline, new, commit, gate, is_unconfirmed, decision, headline, duration, cost } = night;
        let mut counts = [0; Word::ALL.len()];
        // Counted from the cases, so that the chart and the case tables cannot contradict each other.
        for case in cases {
            counts[case.label.word as usize] += 1;
        }
        Self {
            // Parsed, because texts with different time zones do not sort by time.
            started: (point_in_time(&time).map(Timestamp::as_nanosecond), time.clone()),
            source,
            time,
            baseline,
            new,
            commit,
            counts,
            gate,
            is_unconfirmed,
            kind: decision,
            headline,
            duration,
            cost,
            cases: Vec::with_capacity(cases.len()),
            renamed: HashMap::new(),
            reasons: HashMap::new(),
        }
    }

    /// The number of cases with a word.
    pub(crate) const fn count(&self, word: Word) -> u64 {
        self.counts[word as usize]
    }

    /// The number of cases that fail.
    pub(crate) fn failing(&self) -> usize {
        self.cases.iter().filter(|case| case.status == Some(CaseStatus::Failing)).count()
    }

    fn order(&self) -> impl Ord {
        (&self.started, &self.new, &self.baseline)
    }

    fn is_same_comparison(&self, other: &Self) -> bool {
        (&self.new, &self.baseline, &self.time) == (&other.new, &other.baseline, &other.time)
    }
}

impl CaseStatus {
    fn from_case(case: &CaseEvaluation) -> Option<Self> {
        // Neither passing nor failing: the sides were asked different things.
        if case.verdict == Verdict::NotComparable && !case.is_unmet_on_new() {
            return None;
        }
        Some(match case.verdict {
            Verdict::Regressed | Verdict::Broken | Verdict::StillBroken | Verdict::Invalid | Verdict::Missing => {
                CaseStatus::Failing
            }
            // Even if baseline fails it as well: otherwise a bad run would hide its failures by becoming the baseline.
            _ if case.is_unmet_on_new() || AddedCase::find(case) == Some(AddedCase::Unanswered) => CaseStatus::Failing,
            // `changed` included: no rule states that it is worse.
            _ => CaseStatus::Passing,
        })
    }
}

impl History {
    /// Adds an evaluation. A second evaluation of the same two runs at the same time is rejected with the source of the first.
    pub fn add(&mut self, evaluation: &Evaluation, source: EvaluationSource) -> Result<(), EvaluationSource> {
        // In the order of the evaluation, which decides the names of the pages.
        let names = PageNames::new(evaluation.cases.iter().map(|case| case.case_id.clone()).collect());
        self.add_night(Night::new(evaluation), case_results(evaluation), &names, source)
    }

    /// Adds a night with its cases, the most harmful first.
    pub(crate) fn add_night(
        &mut self,
        night: Night,
        cases: Vec<CaseResult>,
        names: &PageNames,
        source: EvaluationSource,
    ) -> Result<(), EvaluationSource> {
        let mut entry = HistoryEntry::new(night, &cases, source);
        // The report and both run folders have a copy of the same evaluation.
        if let Some(known) = self.entries.iter().find(|known| known.is_same_comparison(&entry)) {
            return Err(known.source.clone());
        }
        // Needed here only: all names of many reports would fill the memory.
        let pages = std::mem::take(&mut entry.source.case_pages);
        for CaseResult { id, label, status, reason } in cases {
            let (index, stem) = (self.index(&id), names.stem(&id));
            let has_page = !pages.is_empty() && pages.contains(&format!("{stem}.html"));
            if stem != id.as_str() {
                entry.renamed.insert(index, stem.to_owned());
            }
            entry.cases.push(NightCase { index, label, status, has_page });
            if status == Some(CaseStatus::Failing) {
                entry.reasons.insert(index, reason);
            }
        }
        // A stable sort by word: cases of a word stay in the order of all outputs.
        let word = |case: &NightCase| if case.is_unmet() { Word::Unmet } else { case.label.word };
        entry.cases.sort_by_key(|case| (word(case), case.is_unconfirmed()));
        self.retain_first_reasons(&mut entry);
        // Inserted in the order of the runs: evaluations are added in any order.
        let at = self.entries.iter().position(|known| known.order() > entry.order()).unwrap_or(self.entries.len());
        self.entries.insert(at, entry);
        Ok(())
    }

    /// Drops reasons that are never shown.
    fn retain_first_reasons(&mut self, entry: &mut HistoryEntry) {
        // The page shows only the reason of the first failure of a case. All reasons of many evaluations would fill the memory.
        for known in &mut self.entries {
            if known.reasons.is_empty() {
                continue;
            }
            if known.order() < entry.order() {
                entry.reasons.retain(|index, _| !known.reasons.contains_key(index));
            } else {
                known.reasons.retain(|index, _| !entry.reasons.contains_key(index));
            }
        }
    }

    fn index(&mut self, id: &CaseId) -> u32 {
        // Case ids are stored once and referred to by index: a history holds every case of every evaluation.
        let index = *self.indexes.entry(id.clone()).or_insert_with(|| {
            self.ids.push(id.clone());
            self.ids.len() - 1
        });
        u32::try_from(index).unwrap_or(u32::MAX)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entries(&self) -> &[HistoryEntry] {
        &self.entries
    }

    /// Every case with its result in each evaluation, oldest first; `None` where an evaluation does not include the case.
    pub(crate) fn results(&self) -> Vec<(&CaseId, Vec<Option<NightCase>>)> {
        let mut results: Vec<_> = self.ids.iter().map(|id| (id, vec![None; self.entries.len()])).collect();
        for (number, entry) in self.entries.iter().enumerate() {
            for case in &entry.cases {
                results[case.index as usize].1[number] = Some(*case);
            }
        }
        results
    }

    pub(crate) fn id(&self, case: NightCase) -> &CaseId {
        &self.ids[case.index as usize]
    }

    /// The link to the page of a case in a night, or else to the report of the night; `None` without both.
    pub(crate) fn href(&self, entry: &HistoryEntry, case: NightCase) -> Option<String> {
        let href = entry.source.href.as_ref()?;
        if !case.has_page {
            return Some(href.clone());
        }
        let folder = href.rfind('/').map_or("", |end| &href[..=end]);
        let stem = entry.renamed.get(&case.index).map_or_else(|| self.id(case).as_str(), String::as_str);
        Some(format!("{folder}{}", encode_path(&folder::case_page(stem))))
    }

    /// The reason of the first failure of a case.
    pub(crate) fn first_reason(&self, entry: usize, id: &CaseId) -> &str {
        let index = self.indexes.get(id).and_then(|index| u32::try_from(*index).ok());
        index.and_then(|index| self.entries[entry].reasons.get(&index)).map_or("", String::as_str)
    }
}

fn reason(case: &CaseEvaluation) -> String {
    match (case.reasons.first(), case.unmet_on_new().first()) {
        (Some(reason), _) => text::one_line(&reason.message, LONGEST_REASON),
        (None, Some(unmet)) => {
            let found = unmet.new.as_ref().map_or("", |new| new.found());
            text::one_line(&format!("{} not met on both sides: {found}", unmet.code), LONGEST_REASON)
        }
        (None, None) => String::new(),
    }
}

/// A case over all evaluations.
#[derive(Debug)]
pub(crate) struct CaseOverTime<'a> {
    pub(crate) id: &'a CaseId,
    /// The result in each evaluation, oldest first; `None` where the evaluation does not include the case.
    pub(crate) results: Vec<Option<NightCase>>,
    /// The number of changes between passing and failing.
    pub(crate) flips: usize,
    pub(crate) failed: usize,
    /// The number of evaluations that include it.
    pub(crate) known: usize,
    /// The index of the first evaluation in which it failed; `None` if it never did.
    pub(crate) first_failure: Option<usize>,
    /// The index of the evaluation since which it fails; `None` if it passes in the last one that includes it.
    pub(crate) failing_since: Option<usize>,
}

impl CaseOverTime<'_> {
    pub(crate) const fn is_failing(&self) -> bool {
        self.failing_since.is_some()
    }

    /// The index of the last evaluation that includes it, and its result there. One in which the sides were asked different things
    /// counts only if there is no other.
    pub(crate) fn last(&self) -> Option<(usize, NightCase)> {
        let included = || self.results.iter().enumerate().rev().filter_map(|(index, case)| Some((index, (*case)?)));
        included().find(|(_, case)| case.status.is_some()).or_else(|| included().next())
    }
}

/// All cases, in the order of their first appearance.
pub(crate) fn over_time(history: &History) -> Vec<CaseOverTime<'_>> {
    history.results().into_iter().map(|(id, results)| case_over_time(id, results)).collect()
}

fn case_over_time(id: &CaseId, results: Vec<Option<NightCase>>) -> CaseOverTime<'_> {
    let known: Vec<(usize, CaseStatus)> =
        results.iter().enumerate().filter_map(|(index, case)| Some((index, (*case)?.status?))).collect();
    let is_failing = |(_, status): &&(usize, CaseStatus)| *status == CaseStatus::Failing;
    let first_failure = known.iter().find(is_failing).map(|(index, _)| *index);
    let flips = known.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    let failed = known.iter().filter(is_failing).count();
    // Evaluations without the case neither end a series of failures nor extend it, so only `known` ones count.
    let failing_since = known.iter().rev().take_while(is_failing).last().map(|(index, _)| *index);
    CaseOverTime { id, flips, failed, known: known.len(), first_failure, failing_since, results }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The numbers of a [`CaseOverTime`].
    #[derive(Debug, PartialEq, Eq)]
    struct Counts {
        flips: usize,
        failed: usize,
        known: usize,
        first_failure: Option<usize>,
        failing_since: Option<usize>,
    }

    /// The numbers of a case with these statuses: `p` is passing, `x` failing, `-` not included.
    fn counts(letters: &str) -> Counts {
        let id: CaseId = "a".parse().unwrap();
        let result = |word, status| {
            let label = Label { word, is_unconfirmed: false };
            NightCase { index: 0, label, status: Some(status), has_page: false }
        };
        let status = |letter| match letter {
            'x' => Some(result(Word::Worse, CaseStatus::Failing)),
            'p' => Some(result(Word::Same, CaseStatus::Passing)),
            _ => None,
        };
        let CaseOverTime { flips, failed, known, first_failure, failing_since, .. } =
            case_over_time(&id, letters.chars().map(status).collect());
        Counts { flips, failed, known, first_failure, failing_since }
    }

    #[test]
    fn evaluations_without_the_case_are_ignored() {
        let counted = Counts { flips: 0, failed: 0, known: 3, first_failure: None, failing_since: None };
        assert_eq!(counts("pp-p"), counted);
        let counted = Counts { flips: 1, failed: 2, known: 3, first_failure: Some(2), failing_since: Some(2) };
        assert_eq!(counts("p-x-x"), counted);
        let counted = Counts { flips: 1, failed: 1, known: 2, first_failure: Some(0), failing_since: None };
        assert_eq!(counts("x-p"), counted);
        let counted = Counts { flips: 4, failed: 3, known: 5, first_failure: Some(0), failing_since: Some(4) };
        assert_eq!(counts("xpxpx-"), counted);
    }

    proptest! {
        #[test]
        fn a_failing_case_fails_since_an_evaluation_that_includes_it(letters in "[xp-]{0,40}") {
            let Counts { flips, failed, known, first_failure, failing_since: since } = counts(&letters);
            let Some(first) = first_failure else {
                prop_assert!(!letters.contains('x') && failed == 0 && since.is_none());
                return Ok(());
            };
            prop_assert!(failed <= known && flips < known.max(1) && letters.as_bytes()[first] == b'x');
            let is_failing_now = letters.trim_end_matches('-').ends_with('x');
            prop_assert_eq!(since.is_some(), is_failing_now);
            if let Some(since) = since {
                prop_assert!(since >= first && !letters[since..].contains('p'));
                prop_assert!(!letters[..since].trim_end_matches('-').ends_with('x'));
            }
        }
    }
}
