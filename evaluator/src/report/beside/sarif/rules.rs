//! What each code of a reason or a finding means, in one sentence; `docs/verdicts.md` says more.

use counterproof_validation::Code;

/// The codes of `docs/verdicts.md`; those of violations are listed with the contract's rules.
const MEANINGS: [(&str, &str); 40] = [
    ("more-violations", "An artifact breaks the contract in more than 20 places."),
    ("unreadable", "An artifact could not be read."),
    ("artifact-absent", "A run set out to ask the case and has no artifact of it."),
    ("only-in-baseline", "New has no artifact of the case."),
    ("only-in-new", "Baseline has no artifact of the case."),
    ("runner-failure", "New could not be run, and baseline could."),
    ("runner-failure-gone", "Baseline could not be run, and new could."),
    ("runner-failure-on-both-sides", "Neither side could be run."),
    ("expectation-failed", "An expectation of the cases file held on baseline and fails on new."),
    ("expectation-undecided", "An expression of the cases file could be decided on one side only."),
    ("expectation-met", "An expectation of the cases file failed on baseline and holds on new."),
    ("evidence-lost", "An action had evidence on baseline, and has none on new or some that leads nowhere."),
    ("high-risk-without-evidence", "An action of high risk rests on nothing."),
    ("risk-rose-without-evidence", "An action is of a higher risk than before, without evidence."),
    ("ungrounded-argument", "A tool was given a value that came from nothing the agent had been given."),
    ("action-added", "An action is proposed that was not."),
    ("action-removed", "An action is no longer proposed."),
    ("action-params-changed", "A proposed action has other parameters."),
    ("risk-changed", "A proposed action states another risk."),
    ("action-changed", "A proposed action differs."),
    ("evidence-changed", "The same action rests on something else."),
    ("output-changed", "The final output differs."),
    ("output-type-changed", "The final output is of another type."),
    ("tool-call-added", "A tool was called that was not."),
    ("tool-call-removed", "A tool is no longer called."),
    ("tool-call-moved", "A tool was called at another place in the order."),
    ("tool-args-changed", "A tool was given other arguments."),
    ("tool-result-changed", "A tool returned something else."),
    ("tool-error", "A tool failed that did not fail on baseline."),
    ("tool-error-gone", "A tool failed on baseline and no longer does."),
    ("retrieval-changed", "Other documents were found, or looked for."),
    ("event-changed", "Another event differs."),
    ("pass-rate-fell", "Over several runs, something holds less often than chance explains."),
    ("pass-rate-rose", "Over several runs, something holds more often than chance explains."),
    ("pass-rate-may-have-fallen", "Over several runs, something holds less often, and chance is not ruled out."),
    ("pass-rate-undecided", "Over several runs, too few say whether something holds less often."),
    ("beyond-noise", "New differs where baseline does not differ from itself."),
    ("noise", "New differs no more than baseline differs from itself."),
    ("more-changes", "More than 20 places differ."),
    ("alignment-bounded", "The events were too many to be aligned exactly."),
];

/// A code in words; one that this version does not know says what it can by its name.
pub(super) fn meaning(code: &str) -> String {
    let known = MEANINGS.iter().find(|(known, _)| *known == code).map(|(_, meaning)| *meaning);
    let broken = || Code::ALL.iter().find(|known| known.as_str() == code).map(|known| known.meaning());
    known.or_else(broken).map_or_else(|| code.replace('-', " "), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCS: &str = include_str!("../../../../../docs/verdicts.md");

    #[test]
    fn every_reason_of_the_docs_has_a_meaning() {
        let codes = DOCS.split("## Reason codes").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
        let rows = codes.lines().filter(|line| line.starts_with("| `"));
        let mut count = 0;
        for row in rows {
            let first = row.split('|').nth(1).unwrap();
            for code in first.split('`').skip(1).step_by(2) {
                assert_ne!(meaning(code), code.replace('-', " "), "{code}");
                count += 1;
            }
        }
        assert!(count > 30, "{count}");
    }
}
