//! `summary.md`: the Markdown summary for a pull request. It has a size limit: rows without room are omitted, least severe
//! first, and counted.

use std::collections::HashMap;
use std::fmt::Write as _;

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, GateOutcome, GateRule, SeverityLevel, Verdict};
use counterproof_evaluator::evaluation_text::{self, TableRow};
use counterproof_evaluator::{
    RankedCase, ReviewLine, Standing, gate_headline, gate_qualifications, is_alone, is_unconfirmed, review_lines, text,
    worst_first,
};

use super::context::{ReportContext, ReportUrl};
use crate::files::PageNames;
use crate::folder;
use crate::site::PageSelection;
use crate::view::{display, verdict};

/// The size limit of a summary in bytes: GitHub truncates the summary of a check here.
pub const SUMMARY_UP_TO_BYTES: usize = 65_535;

const LONGEST_SENTENCE: usize = 240;

const LONGEST_NAME: usize = 90;

const LONGEST_HEADLINE: usize = 600;

const REVIEW_LISTED: usize = 10;

const CASES_NAMED: usize = 6;

/// Returns the Markdown summary of at most `most_bytes` bytes; `None` if its first line is longer.
pub fn summary(
    evaluation: &Evaluation,
    context: &ReportContext,
    pages: PageSelection,
    most_bytes: usize,
) -> Option<String> {
    let links = Links::new(evaluation, context.report_url.as_ref(), pages);
    render(evaluation, &links, most_bytes)
}

struct Links<'a> {
    url: Option<&'a ReportUrl>,
    pages: PageNames,
    selection: PageSelection,
}

impl<'a> Links<'a> {
    fn new(evaluation: &Evaluation, url: Option<&'a ReportUrl>, selection: PageSelection) -> Self {
        let ids = evaluation.cases.iter().map(|case| case.case_id.clone()).collect();
        Self { url, pages: PageNames::new(ids), selection }
    }

    fn case(&self, case: &CaseEvaluation) -> String {
        let folder = self.url.filter(|url| url.is_folder() && self.selection.includes(case.verdict));
        let id = &case.case_id;
        match folder {
            Some(url) => link(id.as_str(), &url.page(&folder::case_page(self.pages.stem(id)))),
            None => code(id.as_str()),
        }
    }
}

fn render(evaluation: &Evaluation, links: &Links<'_>, most_bytes: usize) -> Option<String> {
    let mut page = Page { text: String::new(), most: most_bytes };
    // A notice stands over everything, even the verdict.
    let notices: Vec<_> = evaluation.notices.iter().map(|notice| escaped(&notice.message, LONGEST_SENTENCE)).collect();
    if !notices.is_empty() {
        page.add(&format!("## ! {}\n\n", notices.join("; ")));
    }
    if !page.add(&headline(evaluation)) {
        return None;
    }
    let ranked = worst_first(evaluation);
    add_cases(&mut page, evaluation, links, &ranked, Standing::Convicted);
    add_cases(&mut page, evaluation, links, &ranked, Standing::Unconfirmed);
    add_review(&mut page, evaluation, links);
    // Without a baseline, both columns are the same run.
    if !is_alone(evaluation) {
        add_table(&mut page, evaluation);
    }
    page.add(&counts(evaluation));
    page.add(&about(evaluation, links));
    add_rules(&mut page, evaluation);
    add_changes(&mut page, evaluation, links);
    Some(page.text)
}

/// Adds the cases of a standing, in at most half of the room.
fn add_cases(
    page: &mut Page,
    evaluation: &Evaluation,
    links: &Links<'_>,
    ranked: &[RankedCase<'_>],
    standing: Standing,
) {
    let cases: Vec<_> = ranked.iter().filter(|ranked| ranked.standing == standing).collect();
    if cases.is_empty() {
        return;
    }
    let head = match standing {
        Standing::Unconfirmed => {
            "\n### Unconfirmed, which may be chance\n\n| Case | Verdict | Detail |\n|---|---|---|\n"
        }
        Standing::Convicted | Standing::Other => "\n| Case | Verdict | Detail |\n|---|---|---|\n",
    };
    let row = |ranked: &&RankedCase<'_>| {
        let line = evaluation_text::case_line(evaluation, ranked);
        let verdict = escaped(&ranked.verdict(), LONGEST_NAME);
        format!("| {} | {verdict} | {} |\n", links.case(ranked.case), escaped(&line, LONGEST_SENTENCE))
    };
    let half = page.most - page.room() / 2;
    page.add_table(head, cases.iter().map(row), half, |omitted| {
        format!("\n{} not shown.\n", text::count(omitted, "more case is", "more cases are"))
    });
}

/// Adds the solved runs, time, size and cost.
fn add_table(page: &mut Page, evaluation: &Evaluation) {
    let row = |row: &TableRow| {
        let [name, baseline, new, change] =
            [&row.name, &row.baseline, &row.new, &row.change].map(|cell| escaped(cell, LONGEST_NAME));
        format!("| {name} | {baseline} | {new} | {change} |\n")
    };
    let rows: String = evaluation_text::table(evaluation).iter().map(row).collect();
    if !rows.is_empty() {
        page.add(&format!("\n| | Baseline | New | Change |\n|---|---|---|---|\n{rows}"));
    }
}

/// Adds the violated rules, in at most half of the room, how many others are met, and the comparison rules without matches.
fn add_rules(page: &mut Page, evaluation: &Evaluation) {
    let violated: Vec<_> = evaluation.gate.rules.iter().filter(|rule| !rule.passed).collect();
    // The other half of the space is for the changes by root cause.
    let head = "\n| Violated rule | Cases | Limit |\n|---|---:|---|\n";
    let half = page.most - page.room() / 2;
    if !violated.is_empty() {
        page.add_table(head, violated.into_iter().map(rule_row), half, |omitted| {
            format!("\n{} not shown.\n", text::count(omitted, "more violated rule is", "more violated rules are"))
        });
    }
    if let Some(met) = evaluation_text::met_rules(&evaluation.gate) {
        page.add(&format!("\n{met}.\n"));
    }
    for unused in evaluation.rules.iter().filter(|rule| rule.matched == 0) {
        let rule = code(&text::one_line(&unused.rule, LONGEST_SENTENCE));
        page.add(&format!("\nComparison rule without matches: {rule}\n"));
    }
}

/// Adds the review items, in at most half of the room.
fn add_review(page: &mut Page, evaluation: &Evaluation, links: &Links<'_>) {
    let items = review_lines(evaluation, REVIEW_LISTED);
    if items.is_empty() {
        return;
    }
    // One pass instead of a search through all cases for each item.
    let ids: HashMap<_, _> = evaluation.cases.iter().map(|case| (&case.case_id, case)).collect();
    let row = |item: &ReviewLine| {
        let case = item.case_id.as_ref().and_then(|id| ids.get(id)).map(|case| links.case(case)).unwrap_or_default();
        format!("| {case} | {} | {} |\n", escaped(&item.kind, LONGEST_NAME), escaped(&item.message, LONGEST_SENTENCE))
    };
    let half = page.most - page.room() / 2;
    page.add_table(
        "\n### Review\n\n| Case | What | Detail |\n|---|---|---|\n",
        items.iter().map(row),
        half,
        |omitted| format!("\n{} not shown.\n", text::count(omitted, "more item is", "more items are")),
    );
}

fn add_changes(page: &mut Page, evaluation: &Evaluation, links: &Links<'_>) {
    let rows = root_cause_rows(evaluation);
    if rows.is_empty() {
        page.add("\nNo changes.\n");
        return;
    }
    // The last rows are omitted first, so the sizes are summed from the end.
    let sizes: Vec<usize> = rows.iter().rev().map(|row| row.cases.len()).collect();
    let head =
        "\n### Changes by root cause\n\n| Verdict | Severity | Change | Root cause | Cases |\n|---|---|---|---|---|\n";
    let end = page.most;
    page.add_table(head, rows.iter().map(|row| change_row(row, links)), end, |omitted| {
        let cases: usize = sizes.iter().take(omitted).sum();
        format!(
            "\n{} with {} not shown here; the report has all of them.\n",
            text::count(omitted, "more row", "more rows"),
            text::count(cases, "case is", "cases are")
        )
    });
}

struct Page {
    text: String,
    most: usize,
}

impl Page {
    fn room(&self) -> usize {
        self.most - self.text.len()
    }

    /// Adds a piece if there is room for all of it.
    fn add(&mut self, piece: &str) -> bool {
        // As a whole or not at all: half of a row would break the table.
        let fits = piece.len() <= self.room();
        if fits {
            self.text.push_str(piece);
        }
        fits
    }

    /// Adds a table: its rows up to the first without room before `end`, and a note with the number of omitted rows.
    fn add_table(
        &mut self,
        head: &str,
        rows: impl ExactSizeIterator<Item = String>,
        end: usize,
        note: impl Fn(usize) -> String,
    ) {
        let all = rows.len();
        // The note with the greatest number is the longest. Its space is reserved before the rows.
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
            self.add(&table);
        }
        if shown < all {
            self.add(&note(all - shown));
        }
    }
}

fn headline(evaluation: &Evaluation) -> String {
    let sign = match evaluation.gate.outcome {
        GateOutcome::Passed if is_unconfirmed(evaluation) => "?",
        GateOutcome::Passed => "✓",
        GateOutcome::Failed => "✗",
        GateOutcome::NotEnoughData | GateOutcome::NotJudged => "?",
    };
    let mut sentences = vec![gate_headline(evaluation)];
    sentences.extend(gate_qualifications(evaluation));
    format!("## {sign} {}\n", escaped(&sentences.join(". "), LONGEST_HEADLINE))
}

fn limit(rule: &GateRule) -> String {
    escaped(&evaluation_text::limit(rule), LONGEST_NAME)
}

fn about(evaluation: &Evaluation, links: &Links<'_>) -> String {
    let [baseline, new] = [&evaluation.baseline, &evaluation.new].map(|run| code(run.run_id.as_str()));
    let report = links.url.map(|url| format!(" · [full report]({})", url.index_page())).unwrap_or_default();
    if is_alone(evaluation) {
        return format!(
            "\nNew {new}{report}\n\nTo make this run the baseline: `counterproof accept --reason REASON`\n"
        );
    }
    let notes = [evaluation_text::case_summary(evaluation), evaluation_text::repeats(evaluation)];
    let notes: Vec<_> = notes.iter().map(|note| escaped(note, LONGEST_SENTENCE)).collect();
    let age = baseline_age(evaluation).map(|age| format!(" ({age} older than new)")).unwrap_or_default();
    let refresh = "To refresh the baseline: `counterproof accept --reason REASON`";
    format!("\nBaseline {baseline}{age}, new {new}{report}\n\n{refresh}\n\nSummary: {}.\n", notes.join("; "))
}

/// The time from the start of the baseline to the start of new, in its largest whole unit.
fn baseline_age(evaluation: &Evaluation) -> Option<String> {
    const MINUTE: i128 = 60_000_000_000;
    let age = evaluation.new.started()?.checked_sub(evaluation.baseline.started()?)?;
    if evaluation.baseline.run_id == evaluation.new.run_id {
        return None;
    }
    let minutes = usize::try_from(age / MINUTE).ok()?;
    Some(match minutes {
        0..60 => text::count(minutes, "minute", "minutes"),
        60..2880 => text::count(minutes / 60, "hour", "hours"),
        _ => text::count(minutes / 1440, "day", "days"),
    })
}

fn counts(evaluation: &Evaluation) -> String {
    let counts = Verdict::WORST_FIRST.into_iter().filter_map(|verdict| {
        let count = evaluation.counts.get(&verdict).copied().filter(|count| *count > 0)?;
        let unconfirmed = evaluation_text::unconfirmed(&evaluation.cases, verdict);
        Some(format!("{} {}{unconfirmed}", display::number(count), verdict::show(verdict).word))
    });
    let counts: Vec<_> = counts.collect();
    let cases = text::count(evaluation.cases.len(), "case", "cases");
    format!("\n**{cases}**: {}\n", if counts.is_empty() { "none".to_owned() } else { counts.join(" · ") })
}

fn rule_row(rule: &GateRule) -> String {
    let name = escaped(&evaluation_text::rule(rule), LONGEST_NAME);
    format!("| {name} | {} | {} |\n", rule.actual, limit(rule))
}

fn change_row(row: &RootCauseRow<'_>, links: &Links<'_>) -> String {
    let verdicts = row.verdicts();
    let word = |verdict| {
        let view = verdict::show(verdict);
        // Two tildes would strike out the text between them.
        let unconfirmed = evaluation_text::unconfirmed(row.cases.iter().copied(), verdict);
        format!("{} {}{unconfirmed}", view.sign.replace('~', "&#126;"), view.word)
    };
    let verdict: Vec<_> = match &verdicts[..] {
        [(only, _)] => vec![word(*only)],
        several => several.iter().map(|(verdict, count)| format!("{count} {}", word(*verdict))).collect(),
    };
    let mut cases: Vec<_> = row.cases.iter().take(CASES_NAMED).map(|case| links.case(case)).collect();
    if row.cases.len() > CASES_NAMED {
        cases.push(format!("{} more", row.cases.len() - CASES_NAMED));
    }
    let name = |text: &str| escaped(text, LONGEST_NAME);
    let cause = row.cases[0].cause.as_ref().map(|cause| format!("{}: {}", name(&cause.code), name(&cause.place)));
    format!(
        "| {} | {} | {} | {} | {} |\n",
        verdict.join(", "),
        row.severity(),
        escaped(row.message(), LONGEST_SENTENCE),
        cause.unwrap_or_default(),
        text::list(&cases)
    )
}

/// Changed cases with the same root cause, or one case whose root cause is unknown.
#[derive(Debug)]
pub(crate) struct RootCauseRow<'a> {
    /// The cases, worst first; at least one.
    pub(crate) cases: Vec<&'a CaseEvaluation>,
}

impl RootCauseRow<'_> {
    /// The message of the root cause, or of the first reason.
    pub(crate) fn message(&self) -> &str {
        let worst = self.cases[0];
        match &worst.cause {
            Some(cause) if self.cases.len() > 1 => &cause.message,
            _ => worst.reasons.first().map_or("", |reason| &reason.message),
        }
    }

    /// The highest level of severity; empty if nothing counts.
    pub(crate) fn severity(&self) -> &'static str {
        self.cases.iter().filter_map(|case| case.severity_level()).max().map_or("", SeverityLevel::as_str)
    }

    /// The number of cases by verdict, worst first.
    pub(crate) fn verdicts(&self) -> Vec<(Verdict, usize)> {
        let count = |verdict| self.cases.iter().filter(|case| case.verdict == verdict).count();
        Verdict::WORST_FIRST
            .into_iter()
            .map(|verdict| (verdict, count(verdict)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

/// The rows, sorted by their worst case.
pub(crate) fn root_cause_rows(evaluation: &Evaluation) -> Vec<RootCauseRow<'_>> {
    let mut rows: Vec<RootCauseRow<'_>> = Vec::new();
    let mut indexes: HashMap<&str, usize> = HashMap::new();
    // Unchanged and noisy cases are only counted: the summary is about changes.
    for case in worst_first(evaluation).iter().map(|ranked| ranked.case).filter(|case| !verdict::is_quiet(case.verdict))
    {
        let cluster = case.cause.as_ref().map(|cause| cause.cluster.as_str());
        if let Some(index) = cluster.and_then(|cluster| indexes.get(cluster)) {
            rows[*index].cases.push(case);
        } else {
            indexes.extend(cluster.map(|cluster| (cluster, rows.len())));
            rows.push(RootCauseRow { cases: vec![case] });
        }
    }
    rows
}

const BREAK: &str = "&#8203;";

/// A text of at most `longest` characters as plain text, for a sentence or a table cell. The caller must not put it at the start of
/// a line.
///
/// Two parsers must not find markup in it: the Markdown parser, and the code host, which searches the rendered page for names
/// after `@`, numbers after `#`, `!` and `&`, words between colons, and addresses.
pub(crate) fn escaped(text: &str, longest: usize) -> String {
    let short = text::one_line(text, longest);
    let mut safe = String::with_capacity(short.len() + short.len() / 4);
    let characters: Vec<char> = short.chars().collect();
    // Characters that are special in Markdown become character references. The code host decodes those before it searches, so what it
    // would recognize is also broken by a zero-width space.
    for (index, c) in characters.iter().copied().enumerate() {
        let before = &characters[..index];
        let next = characters.get(index + 1).copied();
        let is_followed = next.is_some_and(|next| !next.is_whitespace());
        match c {
            '&' | '@' | '#' | '!' | '$' | '~' | '^' if is_followed => {
                refer(&mut safe, c);
                safe.push_str(BREAK);
            }
            // An underscore within a word is not emphasis. Leaving it keeps tool names readable.
            '_' if before.last().is_some_and(|c| c.is_alphanumeric()) && next.is_some_and(char::is_alphanumeric) => {
                safe.push(c);
            }
            '@' | '<' | '>' | '|' | '\\' | '`' | '*' | '[' | ']' | '{' | '}' | '_' => refer(&mut safe, c),
            ':' | '%' if is_followed => {
                safe.push(c);
                safe.push_str(BREAK);
            }
            // GitHub makes links of addresses without a scheme, too, and of `gh-7`.
            '.' if ends_with(before, "www") => {
                refer(&mut safe, c);
                safe.push_str(BREAK);
            }
            '-' if ends_with(before, "gh") => {
                safe.push(c);
                safe.push_str(BREAK);
            }
            c => safe.push(c),
        }
    }
    safe
}

fn code(id: &str) -> String {
    format!("`{id}`")
}

fn link(id: &str, target: &str) -> String {
    format!("[{}]({target})", code(id))
}

fn refer(safe: &mut String, c: char) {
    let _ = write!(safe, "&#{};", u32::from(c));
}

fn ends_with(before: &[char], word: &str) -> bool {
    let start = before.len().checked_sub(word.len());
    start.is_some_and(|start| before[start..].iter().map(char::to_ascii_lowercase).eq(word.chars()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text that a reader of the page sees.
    fn read(markdown: &str) -> String {
        let mut seen = String::new();
        let mut rest = markdown;
        while let Some(start) = rest.find("&#") {
            seen.push_str(&rest[..start]);
            let end = start + rest[start..].find(';').unwrap();
            let c = char::from_u32(rest[start + 2..end].parse().unwrap()).unwrap();
            if c != '\u{200b}' {
                seen.push(c);
            }
            rest = &rest[end + 1..];
        }
        seen + rest
    }

    #[test]
    fn plain_sentences_stay_readable() {
        for plain in
            ["cancel_order: risk low → high without evidence", "output: “50 EUR” → “500 EUR”; 1 line gone", "a - b"]
        {
            assert_eq!(escaped(plain, 200), plain);
        }
    }

    #[test]
    fn patterns_that_a_code_host_recognizes_are_broken() {
        for (input, safe) in [
            ("@octocat", "&#64;&#8203;octocat"),
            ("o/r#12", "o/r&#35;&#8203;12"),
            ("https://x.y/z", "https:&#8203;//x.y/z"),
            ("WWW.x.y", "WWW&#46;&#8203;x.y"),
            (":tada:", ":&#8203;tada:"),
            ("GH-7", "GH-&#8203;7"),
            ("![a](b)", "&#33;&#8203;&#91;a&#93;(b)"),
            ("<img src=x>", "&#60;img src=x&#62;"),
            ("Stop! ~ a", "Stop! ~ a"),
            ("~~a~~", "&#126;&#8203;&#126;&#8203;a&#126;&#8203;~"),
            ("__init__", "&#95;&#95;init&#95;&#95;"),
            ("a|b\n|c`d`", "a&#124;b &#124;c&#96;d&#96;"),
            ("\u{202e}a", "&#92;u&#123;202e&#125;a"),
        ] {
            assert_eq!(escaped(input, 200), safe);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_one_cell_with_the_same_text(input in any::<String>(), longest in 0_usize..200) {
            let safe = escaped(&input, longest);
            prop_assert!(!safe.contains(['\n', '\r', '|', '`', '<', '>', '\\', '*', '[', ']', '@']), "{safe}");
            prop_assert_eq!(read(&safe), text::one_line(&input, longest));
        }

        #[test]
        fn all_markdown_characters_are_plain_text(input in "[-!\"#$%&'()*+,./:;<=>?@\\[\\]^_`{|}~a1 \n\\\\]{0,60}") {
            let safe = escaped(&input, 200);
            prop_assert!(!safe.contains(['\n', '|', '`', '<', '>', '\\', '*', '[', ']', '@', '{', '}']), "{safe}");
            prop_assert_eq!(read(&safe), text::one_line(&input, 200));
        }
    }
}
