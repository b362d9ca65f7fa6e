//! The texts of commits and pull requests.
//!
//! Text of the model and of the task is untrusted: it cannot mention people, link issues, show images or hide other parts. It stays
//! readable and, without such characters, unchanged.

use std::fmt::Write as _;

/// Maximum columns of a subject and of a title.
const MAX_SUBJECT: usize = 72;
/// Maximum characters of an explanation or a specification in the body, and in the message of the commit.
const MAX_BODY_TEXT: usize = 20_000;
const MAX_MESSAGE_TEXT: usize = 4_000;
/// Maximum bytes of the quoted end of an agent's output.
const MAX_QUOTED: usize = 4 << 10;
/// Maximum number of lines of a list, and of characters of one.
const MAX_LINES: usize = 100;
const MAX_LINE: usize = 300;
/// Between characters that a code host would take for a mention or a link.
const BREAK: char = '\u{200b}';

/// What the texts are made of.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangeTexts<'a> {
    /// The id of the target test, as it was given.
    pub test: Option<&'a str>,
    /// The URL of the CI log that named the test.
    pub ci_log: Option<&'a str>,
    /// The specification of the feature.
    pub specification: Option<&'a str>,
    /// The model's last text: what was wrong and how it was fixed.
    pub explanation: &'a str,
    /// What an agent command printed. Its end is quoted; the body states facts where an explanation would be.
    pub agent_output: Option<&'a str>,
    pub files: &'a [String],
    /// One line each, such as `suite: 12 tests, no new failures`.
    pub results: &'a [String],
    /// Tests that failed and passed again without a change.
    pub flaky: &'a [String],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// At most 72 columns.
    pub subject: String,
    /// The whole message of the commit; begins with the subject.
    pub message: String,
    pub title: String,
    /// Markdown.
    pub body: String,
}

impl ChangeTexts<'_> {
    pub fn texts(&self) -> Texts {
        let subject = self.subject();
        Texts { message: self.message(&subject), title: subject.clone(), body: self.body(), subject }
    }

    fn subject(&self) -> String {
        let cause = neutral(&first_sentence(self.explanation));
        let text = match (self.test, self.specification) {
            (Some(test), _) => {
                let [name, id] = [short_name(test), test].map(|name| format!("Fix {}", one_line(&neutral(name))));
                // A part of a sentence could say something else.
                let with_cause = Some(one_line(&format!("{name}: {cause}"))).filter(|_| !cause.is_empty());
                let whole = with_cause.into_iter().chain([id]).find(|text| columns(text) <= MAX_SUBJECT);
                whole.unwrap_or(name)
            }
            (None, Some(specification)) => capitalised(&neutral(&first_sentence(specification))),
            (None, None) => capitalised(&cause),
        };
        let text = cut_columns(&one_line(&text), MAX_SUBJECT);
        if text.is_empty() { "Change the code".to_owned() } else { text }
    }

    fn message(&self, subject: &str) -> String {
        let mut message = format!("{subject}\n");
        let explanation = neutral(&cut(self.explanation.trim(), MAX_MESSAGE_TEXT));
        if !explanation.is_empty() {
            let _ = write!(message, "\n{explanation}\n");
        }
        message.push('\n');
        match (self.test, self.specification) {
            (Some(test), _) => {
                let _ = writeln!(message, "Test: {}", one_line(&cut(test, MAX_LINE)));
            }
            (None, Some(specification)) => {
                let _ = writeln!(message, "Feature: {}", neutral(&one_line(&cut(specification, MAX_MESSAGE_TEXT))));
            }
            (None, None) => {}
        }
        if let Some(log) = self.ci_log {
            let _ = writeln!(message, "CI log: {}", one_line(&cut(log, MAX_LINE)));
        }
        message.trim_end().to_owned() + "\n"
    }

    /// What is known about the work of an agent that explains nothing.
    fn facts(&self) -> String {
        let count = match self.files.len() {
            1 => "1 file was changed".to_owned(),
            count => format!("{count} files were changed"),
        };
        match self.test {
            Some(test) => format!("The test {} failed before the change, and passes with it. {count}.", code(test)),
            None => format!("The specification was implemented. {count}."),
        }
    }

    fn body(&self) -> String {
        let mut body = String::new();
        let heading = if self.test.is_some() { "What was wrong and how it was fixed" } else { "What was done" };
        match self.agent_output {
            Some(_) => section(&mut body, "What was done", &self.facts()),
            None => section(&mut body, heading, &markdown(self.explanation)),
        }
        if let Some(specification) = self.specification {
            section(&mut body, "Specification", &markdown(specification));
        }
        let mut origin = String::new();
        if let Some(test) = self.test {
            let _ = writeln!(origin, "Failing test: {}", code(test));
        }
        if let Some(log) = self.ci_log {
            let _ = writeln!(origin, "\nCI log: {}", code(log));
        }
        section(&mut body, "Origin", &origin);
        section(&mut body, "Checks", &list(self.results, &|line| neutral(line)));
        section(&mut body, "Flaky tests", &list(self.flaky, &code));
        section(&mut body, "Changed files", &list(self.files, &code));
        section(&mut body, "End of the agent's output", &quoted(self.agent_output.unwrap_or_default()));
        body.push_str("Made by an agent under counterproof. Review it as you review changes of people.\n");
        body
    }
}

fn section(body: &mut String, heading: &str, text: &str) {
    if !text.trim().is_empty() {
        let _ = write!(body, "## {heading}\n\n{}\n\n", text.trim_end());
    }
}

fn list(lines: &[String], shown: &dyn Fn(&str) -> String) -> String {
    let mut text = String::new();
    for line in lines.iter().take(MAX_LINES) {
        let _ = writeln!(text, "- {}", shown(&one_line(&cut(line, MAX_LINE))));
    }
    if lines.len() > MAX_LINES {
        let _ = writeln!(text, "- and {} more", lines.len() - MAX_LINES);
    }
    text
}

/// Quotes the last whole lines of an output in a code block, which they cannot end.
fn quoted(output: &str) -> String {
    let output: String = output.chars().filter(|c| !is_control(*c)).collect();
    let output = output.trim();
    let start = output.ceil_char_boundary(output.len().saturating_sub(MAX_QUOTED));
    let end = &output[start..];
    let lines = if start > 0 { end.split_once('\n').map_or(end, |(_, lines)| lines) } else { end };
    if lines.is_empty() {
        return String::new();
    }
    let longest = lines.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{lines}\n{fence}")
}

/// Makes Markdown of others a part of a body: bounded, neutral, and with all code blocks closed.
fn markdown(text: &str) -> String {
    let text = neutral(&cut(text.trim(), MAX_BODY_TEXT));
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        let line = line.trim_start();
        let Some(mark) = line.chars().next().filter(|c| "`~".contains(*c)) else { continue };
        let length = line.chars().take_while(|c| *c == mark).count();
        let is_bare = line.chars().skip(length).all(char::is_whitespace);
        match open {
            None if length >= 3 => open = Some((mark, length)),
            Some((of, least)) if of == mark && length >= least && is_bare => open = None,
            _ => {}
        }
    }
    match open {
        Some((mark, length)) => format!("{text}\n{}", mark.to_string().repeat(length)),
        None => text,
    }
}

/// Makes text a code span, in which a code host links nothing.
fn code(text: &str) -> String {
    let text = one_line(&cut(text, MAX_LINE));
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Breaks mentions, references to issues, links, images and HTML with a space of no width, and removes control characters.
fn neutral(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + text.len() / 16);
    let mut characters = text.chars().filter(|c| !is_control(*c)).peekable();
    let mut before = ' ';
    while let Some(c) = characters.next() {
        safe.push(c);
        let next = characters.peek().copied().unwrap_or(' ');
        let is_broken = match c {
            '@' | '#' => next.is_alphanumeric() || next == '_',
            '<' => next.is_alphabetic() || "/!?".contains(next),
            ':' => next == '/',
            '!' => next == '[',
            '-' => next.is_ascii_digit() && before.eq_ignore_ascii_case(&'h'),
            _ => false,
        };
        if is_broken {
            safe.push(BREAK);
        }
        before = c;
    }
    safe
}

/// Control characters, and those that change the direction of text or cannot be seen.
fn is_control(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || is_control(c))
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

const fn width(c: char) -> usize {
    match c {
        BREAK => 0,
        '\u{1100}'.. if !matches!(c, '\u{1e00}'..='\u{2e7f}') => 2,
        _ => 1,
    }
}

fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// Cuts at a word, so that a subject has at most this number of columns. A long id is cut at one of its parts.
fn cut_columns(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let (mut columns, mut end, mut word_end, mut part_end) = (0, 0, 0, 0);
    for (at, c) in text.char_indices() {
        columns += width(c);
        // One column for the mark of the cut.
        if columns >= most {
            break;
        }
        if c == ' ' {
            word_end = at;
        } else if !c.is_alphanumeric() {
            part_end = at;
        }
        end = at + c.len_utf8();
    }
    // A text without spaces would lose most of what it says.
    let end = [word_end, part_end].into_iter().find(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", text[..end].trim_end_matches([' ', ',', ';', ':']))
}

/// Returns the first sentence of the first paragraph that has words, without marks of Markdown.
fn first_sentence(text: &str) -> String {
    const MARKS: [char; 5] = ['#', '*', '-', '>', ' '];
    let mut lines = text.lines().map(str::trim).skip_while(|line| !line.chars().any(char::is_alphanumeric));
    let first = lines.next().unwrap_or("");
    let mut sentence = first.trim_start_matches(MARKS).to_owned();
    if !first.starts_with('#') {
        // A sentence may be wrapped. Headings, lists and code blocks are other paragraphs.
        let is_other = |line: &str| line.is_empty() || line.starts_with(['#', '*', '-', '>', '`', '~']);
        for line in lines.take_while(|line| !is_other(line)) {
            if sentence.ends_with(['.', ':']) || sentence.len() > MAX_LINE {
                break;
            }
            sentence.push(' ');
            sentence.push_str(line);
        }
    }
    // A small letter follows an abbreviation.
    let is_end = |at: &usize| !sentence[at + 2..].trim_start().starts_with(char::is_lowercase);
    let end = sentence.match_indices(". ").map(|(at, _)| at).find(is_end).unwrap_or(sentence.len());
    sentence[..end].trim_end_matches(['.', '*', ' ', ':']).to_owned()
}

/// Returns the last part of an id, which is the name of the test.
fn short_name(id: &str) -> &str {
    let last = id.rsplit("::").next().unwrap_or(id);
    let last = last.rsplit(" › ").next().unwrap_or(last).rsplit(" > ").next().unwrap_or(last);
    // The ids of unittest are dotted; a file keeps its name.
    let is_dotted = !last.contains([' ', '/', '[']) && !id.contains("::");
    let is_file = last.rsplit('.').next().is_some_and(|end| ["py", "rs", "js", "ts", "go", "mjs"].contains(&end));
    if is_dotted && !is_file { last.rsplit('.').next().unwrap_or(last) } else { last }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_fix_names_its_test_and_its_cause() {
        let files = ["calc.py".to_owned()];
        let texts = ChangeTexts {
            test: Some("tests/test_calc.py::TestAdd::test_add"),
            explanation: "`add` subtracted its arguments. It adds them now.\n\nSee the diff.",
            files: &files,
            results: &["suite: 2 tests, no new failures".to_owned()],
            ..ChangeTexts::default()
        }
        .texts();
        assert_eq!(texts.subject, "Fix test_add: `add` subtracted its arguments");
        assert_eq!(
            texts.message,
            "Fix test_add: `add` subtracted its arguments\n\n`add` subtracted its arguments. It adds them now.\n\nSee the diff.\n\nTest: \
             tests/test_calc.py::TestAdd::test_add\n"
        );
        let expected = "## What was wrong and how it was fixed\n\n`add` subtracted its arguments. It adds them now.\n\nSee the diff.\n\n## \
                        Origin\n\nFailing test: `tests/test_calc.py::TestAdd::test_add`\n\n## Checks\n\n- suite: 2 tests, no new \
                        failures\n\n## Changed files\n\n- `calc.py`\n\nMade by an agent under counterproof. Review it as you review changes \
                        of people.\n";
        assert_eq!(texts.body, expected);
    }

    #[test]
    fn an_agent_command_is_quoted_and_names_nothing() {
        let files = ["calc.py".to_owned()];
        let output = format!("{}\nthanks @octocat\n```\n\u{1b}[31mdone\n", "Fixed. All of it.\n".repeat(1000));
        let change = ChangeTexts { agent_output: Some(&output), files: &files, ..ChangeTexts::default() };
        let texts = ChangeTexts { test: Some("tests/test_x.py::test_y"), ..change }.texts();
        assert_eq!(texts.subject, "Fix tests/test_x.py::test_y");
        assert_eq!(texts.message, "Fix tests/test_x.py::test_y\n\nTest: tests/test_x.py::test_y\n");
        let facts = "## What was done\n\nThe test `tests/test_x.py::test_y` failed before the change, and passes with it. 1 file was \
                     changed.\n\n## Origin\n";
        assert!(texts.body.starts_with(facts), "{}", texts.body);
        let (_, quote) = texts.body.split_once("## End of the agent's output\n\n").unwrap();
        assert!(quote.starts_with("````text\nFixed. All of it.\n") && quote.len() < MAX_QUOTED + 200, "{quote}");
        assert!(quote.contains("\nthanks @octocat\n```\n[31mdone\n````\n\nMade by"), "{quote}");
        let silent = ChangeTexts { specification: Some("Add triple."), agent_output: Some(" \n"), ..change }.texts();
        assert_eq!(silent.subject, "Add triple");
        assert!(
            silent.body.starts_with("## What was done\n\nThe specification was implemented. 1 file was changed.\n")
        );
        assert!(!silent.body.contains("output"), "{}", silent.body);
    }

    #[test]
    fn a_title_has_whole_words_and_no_part_of_a_cause() {
        let subject = |test: &str, explanation: &str| {
            ChangeTexts { test: Some(test), explanation, ..ChangeTexts::default() }.texts().subject
        };
        let long = "The function subtracted its arguments, which is wrong for all numbers but zero, and";
        assert_eq!(subject("tests/a.py::test_b", &format!("{long} more.")), "Fix tests/a.py::test_b");
        assert_eq!(subject("tests/a.py::test_b", "It kept\nan old\nvalue. More."), "Fix test_b: It kept an old value");
        assert_eq!(
            subject("tests/a.py::test_b", "Dates, e.g. of 2024, were off. So."),
            "Fix test_b: Dates, e.g. of 2024, were off"
        );
        let id = format!("{}::test_that_has_a_name", "folder/".repeat(12));
        assert_eq!(subject(&id, long), "Fix test_that_has_a_name");
        let id = format!("test{}", "_of_numbers".repeat(9));
        assert_eq!(subject(&id, ""), format!("Fix test{}_of…", "_of_numbers".repeat(5)));
    }

    #[test]
    fn a_feature_has_the_first_sentence_of_its_specification() {
        let specification =
            "add a function that calculates fibonacci numbers, with a cache that has a limit and can be cleared. More.";
        let texts =
            ChangeTexts { specification: Some(specification), explanation: "Done.", ..ChangeTexts::default() }.texts();
        assert_eq!(texts.subject, "Add a function that calculates fibonacci numbers, with a cache that…");
        assert!(texts.body.contains(specification) && texts.message.contains(specification));
        assert_eq!(short_name("test_calc.TestAdd.test_add"), "test_add");
        assert_eq!(short_name("tests/test_calc.py"), "tests/test_calc.py");
        assert_eq!(short_name("example.com/m.TestSum"), "example.com/m.TestSum");
    }

    #[test]
    fn text_of_the_model_mentions_and_hides_nothing() {
        let hostile =
            "Thanks @octocat, closes #12, o/r#3, GH-4 https://x/y ![a](b) <!-- hidden \u{202e}\n```\nunclosed";
        let body = ChangeTexts { explanation: hostile, ..ChangeTexts::default() }.texts().body;
        for broken in ["@octocat", "#12", "r#3", "GH-4", "://", "![", "<!--", "\u{202e}"] {
            assert!(!body.contains(broken), "{broken}");
        }
        assert!(body.contains("unclosed\n```\n\nMade by"));
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`"), "`` ` ``");
    }

    proptest! {
        #[test]
        fn texts_are_bounded_for_any_input(test in "(?s).{0,200}", explanation in "(?s)([@#`~]|[a-z]|[가-힣]|\\PC|\n){0,400}", file in "(?s).{0,40}") {
            let files = vec![file; 150];
            let texts = ChangeTexts { test: Some(&test), explanation: &explanation, agent_output: Some(&explanation), files: &files, flaky: &files, ..ChangeTexts::default() }.texts();
            prop_assert!(!texts.subject.is_empty() && !texts.subject.contains('\n'));
            prop_assert!(texts.subject.chars().filter(|c| *c != BREAK).count() <= MAX_SUBJECT);
            prop_assert!(texts.message.starts_with(&texts.subject));
            prop_assert!(texts.body.chars().count() < 60_000);
        }
    }
}
