//! A case as Markdown, to be pasted into an issue. Texts of agents are escaped, so that they can neither format it nor mention anyone.

use counterproof_evaluator::text;

use super::answer_card::AnswerCard;
use super::why::WhyView;
use crate::exports::escaped_markdown as escaped;

/// Characters of a text, and lines of reasons.
const TEXT_CHARS: usize = 300;
const REASONS: usize = 5;

/// What the text is made of besides the card and the reasons.
pub(crate) struct IssueInput<'a> {
    pub(crate) case_id: &'a str,
    pub(crate) asked: &'a str,
    /// Both runs, such as `gpt-4o → gpt-5`.
    pub(crate) runs: String,
    /// The page within the report.
    pub(crate) page: String,
    pub(crate) replay: &'a str,
}

pub(crate) fn markdown(input: &IssueInput<'_>, card: &AnswerCard, why: &WhyView) -> String {
    let unconfirmed = if card.label.is_unconfirmed { ", unconfirmed" } else { "" };
    let mut lines = vec![format!("**{}: {}{unconfirmed}**", escaped(input.case_id, TEXT_CHARS), card.label.text())];
    lines.push(String::new());
    lines.push(format!("What happened: {}", escaped(&card.headline, TEXT_CHARS)));
    if !input.asked.is_empty() {
        lines.push(format!("- Asked: “{}”", escaped(input.asked, TEXT_CHARS)));
    }
    for excerpt in &card.excerpts {
        let words: String = excerpt.parts.iter().map(|part| part.text.as_str()).collect();
        lines.push(format!(
            "- {}: “{}”",
            text::first_upper(excerpt.side),
            escaped(&text::one_line(&words, TEXT_CHARS), TEXT_CHARS)
        ));
    }
    for fact in &card.strip {
        lines.push(format!("- {}: {}", text::first_upper(fact.name), escaped(&fact.value, TEXT_CHARS)));
    }
    let messages = why.groups.iter().filter_map(|group| Some((&group.words, group.messages.first()?)));
    for (title, message) in messages.take(REASONS) {
        lines.push(format!("- {}: {}", text::first_upper(title), escaped(message, TEXT_CHARS)));
    }
    lines.push(String::new());
    let runs = if input.runs.is_empty() { String::new() } else { format!("{}. ", escaped(&input.runs, TEXT_CHARS)) };
    lines.push(format!("Runs: {runs}Page of the report: {}", escaped(&input.page, TEXT_CHARS)));
    if !input.replay.is_empty() {
        lines.push(format!("Replay: {}", escaped(input.replay, TEXT_CHARS)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::answer_card::{Excerpt, Fact};
    use super::super::cells::HighlightedPart;
    use super::*;
    use crate::view::word::{Label, Word};

    #[test]
    fn the_text_names_the_case_and_what_an_agent_says_stays_text() {
        let said = "done @owner <img src=x> [link](http://x)\n# head";
        let card = AnswerCard {
            headline: "New cancelled 3 orders. Baseline cancelled none.".to_owned(),
            label: Label { word: Word::Worse, is_unconfirmed: true },
            risk: String::new(),
            chance: String::new(),
            excerpts: vec![Excerpt {
                side: "new",
                parts: vec![HighlightedPart { text: said.to_owned(), marked: false }],
                is_answer: true,
            }],
            strip: vec![Fact { name: "writes", value: "0 → 3".to_owned(), change: String::new(), is_bad: true }],
            has_other_records: false,
        };
        let why = super::super::why::view(Vec::new(), Word::Worse);
        let input = IssueInput {
            case_id: "order-1",
            asked: "cancel it",
            runs: "a → b".to_owned(),
            page: "cases/order-1.html".to_owned(),
            replay: "",
        };
        let text = markdown(&input, &card, &why);
        assert!(text.starts_with("**order") && text.contains("worse, unconfirmed**"), "{text}");
        assert!(text.contains("What happened: New cancelled 3 orders"), "{text}");
        assert!(text.contains("cases/order") && text.contains("0 → 3"), "{text}");
        assert!(!text.contains("@owner") && !text.contains('<') && !text.contains("[link]"), "{text}");
        assert!(!text.contains("\n# head"), "{text}");
    }
}
