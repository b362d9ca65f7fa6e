//! Pairs of answers labelled by hand: what has to be said of each, and in one sentence why that is right.
//!
//! To add a pair, put it into the `pairs()` of the module that its subject belongs to (or a new module, listed in
//! [`all`] below); a module has one function for each handful of pairs:
//!
//! ```ignore
//! pair("refund-of-ten-times-as-much", "The same tool is to be used on the same order with another amount: one change.")
//!     .baseline_does(agent().proposes("refund_order", &json!({"order_id": "W1", "amount": 50})))
//!     .new_does(agent().proposes("refund_order", &json!({"order_id": "W1", "amount": 500})))
//!     .is(Verdict::Changed, &["action-params-changed"])
//! ```
//!
//! `is` names the verdict and the codes of all reasons, in order. `expecting` says what the cases file expects, `under` names the rules of comparison;
//! `diverging_at` names the pointers of the first divergence, `meeting_again_at` those of the recovery; `aligned` counts the
//! operations; `also` takes any further check of what is said of the case.
//! Every pair is compared in both directions, and each of its sides with itself, without asking.

use std::panic::{AssertUnwindSafe, catch_unwind};

use counterproof_artifact::evaluation::{CaseEvaluation, Operations, SidePointer, Verdict};
use serde_json::Value;

use crate::kit::{self, Pair};
use agent::Agent;

mod actions;
mod agent;
mod alignment;
mod causes;
mod differences;
mod orders;
mod rules;

/// Every labelled pair.
fn all() -> Vec<Labelled> {
    [actions::pairs(), alignment::pairs(), causes::pairs(), differences::pairs(), orders::pairs(), rules::pairs()]
        .into_iter()
        .flatten()
        .collect()
}

/// A further check of what is said of a case.
type Check = Box<dyn Fn(&CaseEvaluation)>;

/// Two answers and what has to be said of them.
struct Labelled {
    name: &'static str,
    why: &'static str,
    baseline: Agent,
    new: Agent,
    expected: Option<Value>,
    rules: &'static str,
    verdict: Verdict,
    codes: Vec<&'static str>,
    checks: Vec<Check>,
}

/// A pair under its name, with the sentence that says why its label is right. Until told otherwise both sides are an
/// agent that does nothing.
fn pair(name: &'static str, why: &'static str) -> Labelled {
    Labelled {
        name,
        why,
        baseline: agent::agent(),
        new: agent::agent(),
        expected: None,
        rules: "",
        verdict: Verdict::Unchanged,
        codes: Vec::new(),
        checks: Vec::new(),
    }
}

impl Labelled {
    /// What the baseline did.
    fn baseline_does(mut self, agent: Agent) -> Self {
        self.baseline = agent;
        self
    }

    /// What new did.
    fn new_does(mut self, agent: Agent) -> Self {
        self.new = agent;
        self
    }

    /// What the cases file expects of the case.
    fn expecting(mut self, expected: Value) -> Self {
        self.expected = Some(expected);
        self
    }

    /// The rules of comparison, each written as a `[[rule]]`.
    fn under(mut self, rules: &'static str) -> Self {
        self.rules = rules;
        self
    }

    /// The verdict, and the codes of all reasons in their order.
    fn is(mut self, verdict: Verdict, codes: &[&'static str]) -> Self {
        self.verdict = verdict;
        self.codes = codes.to_vec();
        self
    }

    /// The pointers of the first divergence, such as `baseline /events/0`.
    fn diverging_at(self, places: &'static [&'static str]) -> Self {
        self.also(move |row| {
            let Some(divergence) = &row.first_divergence else { panic!("the sides do not diverge") };
            assert_eq!(named(&divergence.pointers), places);
        })
    }

    /// How many events are the same, changed, moved, added and removed, and what the alignment costs.
    fn aligned(self, counts: [u64; 5], cost: f64) -> Self {
        self.also(move |row| {
            let Some(alignment) = &row.alignment else { panic!("nothing was aligned") };
            let Operations { same, changed, moved, added, removed } = alignment.operations;
            assert_eq!([same, changed, moved, added, removed], counts);
            assert!((alignment.cost - cost).abs() < 1e-9, "{}", alignment.cost);
            assert!(!alignment.bounded);
        })
    }

    /// Where the two sides meet again, such as `baseline /events/4`.
    fn meeting_again_at(self, places: &'static [&'static str]) -> Self {
        self.also(move |row| {
            let recovery = row.alignment.as_ref().map(|alignment| &alignment.recovery[..]).unwrap_or_default();
            assert_eq!(named(recovery), places);
        })
    }

    /// The codes of the findings, and whether the baseline has the same.
    fn finding(self, findings: &'static [(&'static str, bool)]) -> Self {
        self.also(move |row| {
            let found: Vec<_> = row.findings.iter().map(|it| (it.code.as_str(), it.in_baseline)).collect();
            assert_eq!(found, findings, "{:#?}", row.findings);
        })
    }

    /// The code and the place of the cause.
    fn caused_by(self, code: &'static str, place: &'static str) -> Self {
        self.also(move |row| {
            let Some(cause) = &row.cause else { panic!("no cause") };
            assert_eq!((cause.code.as_str(), cause.place.as_str()), (code, place), "{cause:#?}");
        })
    }

    /// The way from what changed back to the cause.
    fn walking(self, path: &'static [&'static str]) -> Self {
        self.also(move |row| {
            let Some(cause) = &row.cause else { panic!("no cause") };
            let found: Vec<_> = cause.path.iter().map(|place| format!("{} {}", place.side, place.pointer)).collect();
            assert_eq!(found, path);
        })
    }

    /// A further check of what is said of the case.
    fn also(mut self, check: impl Fn(&CaseEvaluation) + 'static) -> Self {
        self.checks.push(Box::new(check));
        self
    }

    fn compared(&self, baseline: &Agent, new: &Agent) -> CaseEvaluation {
        let pair = Pair::with_answers(&baseline.artifact(), &new.artifact()).under(kit::rules(self.rules));
        let pair = match &self.expected {
            Some(expected) => pair.expecting(expected),
            None => pair.titled("Help me, please"),
        };
        pair.row()
    }

    fn check(&self) {
        let row = self.compared(&self.baseline, &self.new);
        let codes: Vec<_> = row.reasons.iter().map(|reason| reason.code.as_str()).collect();
        assert_eq!((row.verdict, &codes[..]), (self.verdict, &self.codes[..]), "{:#?}", row.reasons);
        self.checks.iter().for_each(|check| check(&row));

        let back = self.compared(&self.new, &self.baseline);
        assert_eq!(back.verdict == Verdict::Unchanged, row.verdict == Verdict::Unchanged, "the other way round");
        for side in [&self.baseline, &self.new] {
            assert_eq!(self.compared(side, side).verdict, Verdict::Unchanged, "a side against itself");
        }
    }
}

fn named(places: &[SidePointer]) -> Vec<String> {
    places.iter().map(|place| format!("{} {}", place.side, place.pointer)).collect()
}

#[test]
fn every_labelled_pair_gets_what_its_label_says() {
    let failed: Vec<_> = all()
        .iter()
        .filter_map(|pair| {
            let panic = catch_unwind(AssertUnwindSafe(|| pair.check())).err()?;
            let said = panic.downcast_ref::<String>().map_or("", String::as_str);
            Some(format!("{}: {}\n{said}", pair.name, pair.why))
        })
        .collect();
    assert!(failed.is_empty(), "these labels do not hold:\n{}", failed.join("\n\n"));
}

#[test]
fn every_label_has_a_name_of_its_own_and_says_why_in_a_sentence() {
    let mut names = std::collections::HashSet::new();
    for pair in all() {
        assert!(names.insert(pair.name), "{} is there twice", pair.name);
        assert!(pair.why.ends_with('.') && pair.why.split(' ').count() >= 6, "{}: {}", pair.name, pair.why);
    }
}
