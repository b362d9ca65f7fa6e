//! What stays of each evaluation: one night, and how each of its cases was.

use std::collections::HashMap;

use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, Verdict};

use crate::comparison::evaluation_text;
use crate::values::text;

/// Characters of the reason that a case went wrong for.
const REASON: usize = 160;

/// Where the evaluation of a night was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder, as it was named.
    pub folder: String,
    /// The page or file to open, relative to the history's folder and percent-encoded; `None` where no link leads there.
    pub href: Option<String>,
}

/// Every night so far, in the order of their new runs' times.
#[derive(Debug, Default)]
pub struct History {
    nights: Vec<Night>,
    ids: Vec<CaseId>,
    places: HashMap<CaseId, usize>,
}

/// One evaluation.
#[derive(Debug)]
pub(super) struct Night {
    /// When its new run started; texts that are no times come before all times.
    age: (Option<i128>, String),
    pub(super) place: Place,
    pub(super) time: String,
    pub(super) baseline: String,
    pub(super) new: String,
    pub(super) counts: [u64; Verdict::WORST_FIRST.len()],
    pub(super) gate: GateOutcome,
    pub(super) sentence: String,
    /// How each case was that the night has, by the case's place.
    cases: Vec<(u32, Stand)>,
    /// Why, for each that was wrong.
    reasons: HashMap<u32, String>,
}

/// How a case was in a night.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    /// Nothing is said against it.
    Fine,
    /// New is worse than the baseline, has no answer that can be used, or does not meet what is expected of it.
    Wrong,
}

impl Night {
    fn order(&self) -> impl Ord {
        (&self.age, &self.new, &self.baseline)
    }
}

impl Stand {
    fn of(case: &CaseEvaluation) -> Self {
        match case.verdict {
            Verdict::Regressed | Verdict::Broken | Verdict::StillBroken | Verdict::Invalid | Verdict::Missing => {
                Stand::Wrong
            }
            _ if case.is_unmet_on_new() => Stand::Wrong,
            _ => Stand::Fine,
        }
    }
}

impl History {
    /// Takes what is to be kept of an evaluation. One of the same two runs at the same time is taken once: where it was found
    /// first is the error.
    pub fn add(&mut self, evaluation: &Evaluation, place: Place) -> Result<(), Place> {
        let (baseline, new) = (&evaluation.baseline, &evaluation.new);
        let (baseline, new_id) = (baseline.run_id.to_string(), new.run_id.to_string());
        let is_same =
            |night: &&Night| night.new == new_id && night.baseline == baseline && night.time == new.generated_at;
        if let Some(known) = self.nights.iter().find(is_same) {
            return Err(known.place.clone());
        }
        let mut night = Night {
            age: (new.started(), new.generated_at.clone()),
            place,
            time: new.generated_at.clone(),
            baseline,
            new: new_id,
            counts: [0; Verdict::WORST_FIRST.len()],
            gate: evaluation.gate.outcome,
            sentence: evaluation_text::outcome(evaluation),
            cases: Vec::with_capacity(evaluation.cases.len()),
            reasons: HashMap::new(),
        };
        for case in &evaluation.cases {
            // Counted here, so that the chart and the cases can never tell two stories.
            if let Some(place) = Verdict::WORST_FIRST.iter().position(|verdict| *verdict == case.verdict) {
                night.counts[place] += 1;
            }
            let index = self.index(&case.case_id);
            let stand = Stand::of(case);
            night.cases.push((index, stand));
            if stand == Stand::Wrong {
                let reason = reason(case);
                night.reasons.insert(index, reason);
            }
        }
        self.keep_first_reasons(&mut night);
        let at = self.nights.iter().position(|known| known.order() > night.order()).unwrap_or(self.nights.len());
        self.nights.insert(at, night);
        Ok(())
    }

    /// Of each case, only the reason of the earliest night is ever shown: the others go at once.
    fn keep_first_reasons(&mut self, night: &mut Night) {
        for known in &mut self.nights {
            if known.reasons.is_empty() {
                continue;
            }
            if known.order() < night.order() {
                night.reasons.retain(|index, _| !known.reasons.contains_key(index));
            } else {
                known.reasons.retain(|index, _| !night.reasons.contains_key(index));
            }
        }
    }

    fn index(&mut self, id: &CaseId) -> u32 {
        let index = *self.places.entry(id.clone()).or_insert_with(|| {
            self.ids.push(id.clone());
            self.ids.len() - 1
        });
        u32::try_from(index).unwrap_or(u32::MAX)
    }

    /// How many nights there are.
    pub fn len(&self) -> usize {
        self.nights.len()
    }

    /// True where there is no night.
    pub fn is_empty(&self) -> bool {
        self.nights.is_empty()
    }

    /// The nights, oldest first.
    pub(super) fn nights(&self) -> &[Night] {
        &self.nights
    }

    /// Every case with how it was in each night, oldest first; `None` where the night does not have it.
    pub(super) fn stands(&self) -> Vec<(&CaseId, Vec<Option<Stand>>)> {
        let mut stands: Vec<_> = self.ids.iter().map(|id| (id, vec![None; self.nights.len()])).collect();
        for (number, night) in self.nights.iter().enumerate() {
            for (index, stand) in &night.cases {
                stands[*index as usize].1[number] = Some(*stand);
            }
        }
        stands
    }

    /// Why a case was wrong in its first wrong night.
    pub(super) fn first_reason(&self, night: usize, id: &CaseId) -> &str {
        let index = self.places.get(id).and_then(|index| u32::try_from(*index).ok());
        index.and_then(|index| self.nights[night].reasons.get(&index)).map_or("", String::as_str)
    }
}

fn reason(case: &CaseEvaluation) -> String {
    match (case.reasons.first(), case.unmet_on_new().first()) {
        (Some(reason), _) => text::one_line(&reason.message, REASON),
        (None, Some(unmet)) => {
            let found = unmet.new.as_ref().map_or("", |new| new.found());
            text::one_line(&format!("{} not met, nor by the baseline: {found}", unmet.code), REASON)
        }
        (None, None) => String::new(),
    }
}
