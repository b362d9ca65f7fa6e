//! Why a case is worse, in a few lines: the reasons grouped by their code, each message once.

use counterproof_evaluator::ReasonCode;

use super::context::AnchorLink;
use super::reasons::ReasonView;
use crate::view::word::Word;

/// Groups that are visible at once.
const GROUPS_OPEN: usize = 5;

/// Messages and links of a group.
const MESSAGES_SHOWN: usize = 3;
const LINKS_SHOWN: usize = 6;

#[derive(Debug, Clone)]
pub(crate) struct WhyView {
    pub(crate) heading: &'static str,
    pub(crate) groups: Vec<ReasonGroup>,
    pub(crate) more_groups: Vec<ReasonGroup>,
}

/// The reasons of one code.
#[derive(Debug, Clone)]
pub(crate) struct ReasonGroup {
    pub(crate) code: String,
    /// The code in words.
    pub(crate) words: String,
    pub(crate) count: usize,
    /// The meaning of the code; empty for an unknown one.
    pub(crate) meaning: &'static str,
    /// Whether the code is one of harm.
    pub(crate) is_bad: bool,
    /// Each message once.
    pub(crate) messages: Vec<String>,
    /// Further messages, folded.
    pub(crate) more_messages: Vec<String>,
    pub(crate) links: Vec<AnchorLink>,
    pub(crate) is_first: bool,
}

pub(crate) fn view(reasons: Vec<ReasonView>, word: Word) -> WhyView {
    let mut groups: Vec<ReasonGroup> = Vec::new();
    for reason in reasons {
        let position = groups.iter().position(|group| group.code == reason.code).unwrap_or_else(|| {
            groups.push(group(&reason.code, word));
            groups.len() - 1
        });
        let group = &mut groups[position];
        group.count += 1;
        group.is_first |= reason.is_first;
        if !group.messages.contains(&reason.message) {
            group.messages.push(reason.message);
        }
        for link in reason.links {
            if !group.links.contains(&link) && group.links.len() < LINKS_SHOWN {
                group.links.push(link);
            }
        }
    }
    for group in &mut groups {
        group.more_messages = group.messages.split_off(group.messages.len().min(MESSAGES_SHOWN));
    }
    let more_groups = groups.split_off(groups.len().min(GROUPS_OPEN));
    WhyView { heading: heading(word), groups, more_groups }
}

fn group(code: &str, word: Word) -> ReasonGroup {
    let known = ReasonCode::parse(code);
    // Of a case that is worse, the differences that are neither better nor worse are not red.
    let is_neutral = ["changed", "added", "removed", "moved", "gone", "met", "noise", "undecided"];
    let is_bad = matches!(word, Word::Worse | Word::Failed | Word::Unmet)
        && !is_neutral.iter().any(|end| code.ends_with(end) && !code.ends_with("unmet"));
    ReasonGroup {
        code: code.to_owned(),
        words: code.replace('-', " "),
        count: 0,
        meaning: known.map_or("", ReasonCode::meaning),
        is_bad,
        messages: Vec::new(),
        more_messages: Vec::new(),
        links: Vec::new(),
        is_first: false,
    }
}

const fn heading(word: Word) -> &'static str {
    match word {
        Word::Worse => "Why worse",
        Word::Failed => "Why it failed",
        Word::NotCompared => "Why it is not compared",
        Word::Better => "Why better",
        Word::Unmet => "What is not met",
        Word::Different | Word::Noise | Word::Same | Word::Met => "What differs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_a_code_are_one_line_and_equal_messages_are_shown_once() {
        let reason = |code: &str, message: &str| ReasonView {
            code: code.to_owned(),
            message: message.to_owned(),
            links: Vec::new(),
            is_first: false,
        };
        let reasons = ["a-b", "c", "a-b", "a-b", "d", "e", "f", "g"].iter().map(|code| reason(code, "said")).collect();
        let view = view(reasons, Word::Worse);
        let counts: Vec<_> = view.groups.iter().map(|group| (group.code.as_str(), group.count)).collect();
        assert_eq!(counts, [("a-b", 3), ("c", 1), ("d", 1), ("e", 1), ("f", 1)]);
        assert_eq!((view.groups[0].messages.len(), view.more_groups.len()), (1, 1));
    }
}
