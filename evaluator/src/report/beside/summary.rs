//! `summary.md`: what a reviewer reads on a pull request. It is never longer than it may be: what has no room is left out in
//! whole rows, the least bad first, and counted.

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, GateRule, Verdict};

use super::markdown;
use super::rows::{self, Row};
use super::url::ReportUrl;
use crate::comparison::evaluation_text;
use crate::gate;
use crate::report::folder::CASES_FOLDER;
use crate::report::names::Pages;
use crate::report::shown;
use crate::report::verdicts;
use crate::report::writer::PageSelection;
use crate::values::text;

/// Bytes of a summary: GitHub cuts that of a check here.
pub const SUMMARY_UP_TO_BYTES: usize = 65_535;

/// Characters of a sentence.
const SENTENCE: usize = 240;

/// Characters of a name: of a rule, or of a place.
const NAME: usize = 90;

/// Rules that the first line names.
const RULES_NAMED: usize = 3;

/// Cases that a row names.
const CASES_NAMED: usize = 6;

/// Where the summary may link to.
pub(super) struct Links<'a> {
    url: Option<&'a ReportUrl>,
    pages: Pages,
    selection: PageSelection,
}

impl<'a> Links<'a> {
    /// Links into a report of which some cases have pages.
    pub(super) fn of(evaluation: &Evaluation, url: Option<&'a ReportUrl>, selection: PageSelection) -> Self {
        let ids = evaluation.cases.iter().map(|case| case.case_id.clone()).collect();
        Self { url, pages: Pages::of(ids), selection }
    }

    fn case(&self, case: &CaseEvaluation) -> String {
        let folder = self.url.filter(|url| url.is_folder() && self.selection.includes(case.verdict));
        let id = &case.case_id;
        match folder {
            Some(url) => {
                markdown::link(id.as_str(), &url.page(&format!("{CASES_FOLDER}/{}.html", self.pages.stem(id))))
            }
            None => markdown::code(id.as_str()),
        }
    }
}

/// The summary in at most so many bytes; `None` where the first line has no room.
pub(super) fn render(evaluation: &Evaluation, links: &Links<'_>, most_bytes: usize) -> Option<String> {
    let mut page = Page { text: String::new(), most: most_bytes };
    if !page.put(&headline(evaluation)) {
        return None;
    }
    page.put(&about(evaluation, links));
    page.put(&counts(evaluation));
    let half = page.most - page.room() / 2;
    let mut rules: Vec<_> = evaluation.gate.rules.iter().collect();
    rules.sort_by_key(|rule| rule.passed);
    page.table("\n| | Rule | Cases | Limit |\n|---|---|---:|---|\n", rules.into_iter().map(rule), half, |left| {
        format!("\n{} not shown.\n", text::count(left, "more rule is", "more rules are"))
    });
    for idle in evaluation.rules.iter().filter(|rule| rule.matched == 0) {
        let rule = markdown::code(&text::one_line(&idle.rule, SENTENCE));
        page.put(&format!("\nA rule of comparison matched nothing: {rule}\n"));
    }
    let moved = rows::moved(evaluation);
    if moved.is_empty() {
        page.put("\nNothing moved.\n");
        return Some(page.text);
    }
    let mut sizes: Vec<usize> = moved.iter().map(|row| row.cases.len()).collect();
    sizes.reverse();
    page.table(
        "\n### What moved\n\n| Verdict | What | Cause | Cases |\n|---|---|---|---|\n",
        moved.iter().map(|moved| row(moved, links)),
        most_bytes,
        |left| {
            let cases: usize = sizes.iter().take(left).sum();
            format!(
                "\n{} with {} not shown here; the report has them all.\n",
                text::count(left, "more row", "more rows"),
                text::count(cases, "case is", "cases are")
            )
        },
    );
    Some(page.text)
}

/// A text with a limit.
struct Page {
    text: String,
    most: usize,
}

impl Page {
    fn room(&self) -> usize {
        self.most - self.text.len()
    }

    /// Adds a piece if it has room as a whole.
    fn put(&mut self, piece: &str) -> bool {
        let fits = piece.len() <= self.room();
        if fits {
            self.text.push_str(piece);
        }
        fits
    }

    /// Adds a table: its rows up to the first that has no room before `end`, and a note on how many are left out.
    fn table(
        &mut self,
        head: &str,
        rows: impl ExactSizeIterator<Item = String>,
        end: usize,
        note: impl Fn(usize) -> String,
    ) {
        let all = rows.len();
        let longest_note = note(all).len();
        let end = end.min(self.most);
        let mut table = head.to_owned();
        let mut shown = 0;
        for row in rows {
            let needed = self.text.len() + table.len() + row.len() + longest_note;
            if needed > end {
                break;
            }
            table.push_str(&row);
            shown += 1;
        }
        if shown > 0 {
            self.put(&table);
        }
        if shown < all {
            self.put(&note(all - shown));
        }
    }
}

fn headline(evaluation: &Evaluation) -> String {
    let gate_result = &evaluation.gate;
    let sign = match gate_result.outcome {
        GateOutcome::Passed => "✓",
        GateOutcome::Failed => "✗",
        GateOutcome::NotEnoughData => "?",
    };
    let broken: Vec<_> = gate_result.rules.iter().filter(|rule| !rule.passed).collect();
    let mut named: Vec<_> = broken
        .iter()
        .take(RULES_NAMED)
        .map(|rule| {
            format!("{} {} of {}", markdown::text(&evaluation_text::rule(rule), NAME), rule.actual, limit(rule))
        })
        .collect();
    if broken.len() > RULES_NAMED {
        named.push(format!("{} more", broken.len() - RULES_NAMED));
    }
    let named = if named.is_empty() { String::new() } else { format!(" ({})", text::list(&named)) };
    let mut sentences = vec![format!("{}{named}", gate::headline(gate_result))];
    sentences.extend(gate::qualifications(evaluation));
    format!("## {sign} {}\n", sentences.join(". "))
}

fn limit(rule: &GateRule) -> String {
    markdown::text(&evaluation_text::limit(rule), NAME)
}

fn about(evaluation: &Evaluation, links: &Links<'_>) -> String {
    let runs = [&evaluation.baseline, &evaluation.new].map(|run| markdown::code(run.run_id.as_str()));
    let report = links.url.map(|url| format!(" · [the whole report]({})", url.first_page())).unwrap_or_default();
    let mut said = vec![evaluation_text::besides(evaluation), evaluation_text::repeats(evaluation)];
    said.extend(evaluation_text::suite(evaluation));
    let said: Vec<_> = said.iter().map(|sentence| markdown::text(sentence, SENTENCE)).collect();
    format!("\nBaseline {}, new {}{report}\n\nIn short: {}.\n", runs[0], runs[1], said.join("; "))
}

fn counts(evaluation: &Evaluation) -> String {
    let counted = Verdict::WORST_FIRST.into_iter().filter_map(|verdict| {
        let count = evaluation.counts.get(&verdict).copied().filter(|count| *count > 0)?;
        Some(format!("{} {}", shown::number(count), verdicts::show(verdict).word))
    });
    let counted: Vec<_> = counted.collect();
    let cases = text::count(evaluation.cases.len(), "case", "cases");
    format!("\n**{cases}**: {}\n", if counted.is_empty() { "none".to_owned() } else { counted.join(" · ") })
}

fn rule(rule: &GateRule) -> String {
    let sign = match (rule.passed, rule.limit) {
        (false, _) => "✗ violated",
        (true, Some(_)) => "✓ met",
        (true, None) => "",
    };
    format!("| {sign} | {} | {} | {} |\n", markdown::text(&evaluation_text::rule(rule), NAME), rule.actual, limit(rule))
}

fn row(row: &Row<'_>, links: &Links<'_>) -> String {
    let verdicts = row.verdicts();
    let word = |verdict| {
        let shown = verdicts::show(verdict);
        format!("{} {}", shown.sign.replace('~', "&#126;"), shown.word)
    };
    let verdict: Vec<_> = match &verdicts[..] {
        [(only, _)] => vec![word(*only)],
        several => several.iter().map(|(verdict, count)| format!("{count} {}", word(*verdict))).collect(),
    };
    let mut cases: Vec<_> = row.cases.iter().take(CASES_NAMED).map(|case| links.case(case)).collect();
    if row.cases.len() > CASES_NAMED {
        cases.push(format!("{} more", row.cases.len() - CASES_NAMED));
    }
    let cause = row.cases[0].cause.as_ref();
    let cause =
        cause.map(|cause| format!("{}: {}", markdown::text(&cause.code, NAME), markdown::text(&cause.place, NAME)));
    format!(
        "| {} | {} | {} | {} |\n",
        verdict.join(", "),
        markdown::text(row.sentence(), SENTENCE),
        cause.unwrap_or_default(),
        text::list(&cases)
    )
}
