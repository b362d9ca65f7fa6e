//! The state of a source text at the start of each line: depth of brackets, and whether the line begins within a string or a comment.

use std::sync::LazyLock;

use regex::Regex;

use crate::suite::read::regex;

/// Between the parts of the name of a test, such as its class and its function.
pub(super) const SEPARATOR: &str = "::";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Rust,
    Go,
    JavaScript,
}

/// The state at the start of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineStart {
    /// Open brackets of all kinds.
    pub depth: usize,
    /// Open brackets of all kinds at the end of the line.
    pub depth_after: usize,
    /// The line begins within a string or a block comment.
    pub is_inside: bool,
    /// The line has a bracket that opens a block: `{`.
    pub opens: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Code,
    LineComment,
    /// Nested in Rust.
    BlockComment(usize),
    /// Ends with this character; a backslash escapes, and the end of the line ends it too if it has no other lines.
    Quoted(char, bool),
    /// Three quotes of Python.
    Triple(char),
    /// Ends with a quote and this number of `#`; nothing escapes.
    Raw(usize),
    /// A raw string of Go.
    Backquoted,
}

impl Language {
    pub(super) fn of_path(path: &str) -> Option<Self> {
        match path.rsplit('.').next().filter(|extension| extension.len() < path.len())? {
            "py" | "pyi" => Some(Language::Python),
            "rs" => Some(Language::Rust),
            "go" => Some(Language::Go),
            "js" | "ts" | "jsx" | "tsx" | "mjs" | "cjs" | "mts" | "cts" => Some(Language::JavaScript),
            _ => None,
        }
    }

    pub(super) fn is_import(self, line: &str) -> bool {
        static IMPORT: LazyLock<[Regex; 4]> = LazyLock::new(|| {
            [
                regex(r"^\s*(?:import\s|from\s+\S+\s+import\b)"),
                regex(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:use|extern crate)\s[^=]*;?\s*$"),
                regex(r#"^(?:import\b.*|\s+(?:[\w.]+\s+)?"[^"]*"\s*)$"#),
                regex(r"^\s*(?:import\b.*|(?:const|let|var)\s+[^=]+=\s*require\([^()]*\);?\s*)$"),
            ]
        });
        IMPORT[self as usize].is_match(line)
    }

    pub(super) fn is_comment(self, line: &str) -> bool {
        let line = line.trim_start();
        if self == Language::Python { line.starts_with('#') } else { line.starts_with("//") || line.starts_with("* ") }
    }

    /// Reads the state of each line.
    pub(super) fn lines(self, text: &str) -> Vec<LineStart> {
        let mut scanner = Scanner { language: self, within: Within::Code, depth: 0 };
        text.lines().map(|line| scanner.line(line)).collect()
    }
}

/// A test or a group of JavaScript.
pub(super) static CALL: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^\s*(?:await\s+)?([xf]?(?:describe|context|suite|test|it))(?:\.\w+)*\s*[(`]"));
/// The first argument, or that of the second call: `test.each(…)("title", …)`.
pub(super) static TITLE: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"(?:^|\(\s*)(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)\s*,"#));

pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the identifiers of a line.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).filter(|word| !word.is_empty())
}

struct Scanner {
    language: Language,
    within: Within,
    depth: usize,
}

impl Scanner {
    fn line(&mut self, line: &str) -> LineStart {
        let (depth, is_inside) = (self.depth, self.within != Within::Code);
        let mut opens = false;
        let characters: Vec<char> = line.chars().collect();
        let mut at = 0;
        while at < characters.len() {
            opens |= self.within == Within::Code && characters[at] == '{';
            at += self.step(&characters, at).max(1);
        }
        match self.within {
            Within::LineComment => self.within = Within::Code,
            // A backslash at its end continues a string.
            Within::Quoted(_, false) if !line.ends_with('\\') => self.within = Within::Code,
            _ => {}
        }
        LineStart { depth, depth_after: self.depth, is_inside, opens }
    }

    /// Reads what begins at a character. Returns its length.
    fn step(&mut self, text: &[char], at: usize) -> usize {
        let has = |what: &str| what.chars().enumerate().all(|(index, c)| text.get(at + index) == Some(&c));
        match self.within {
            Within::LineComment => text.len(),
            Within::BlockComment(level) if has("*/") => {
                self.within = if level > 1 { Within::BlockComment(level - 1) } else { Within::Code };
                2
            }
            Within::BlockComment(level) if has("/*") && self.language == Language::Rust => {
                self.within = Within::BlockComment(level + 1);
                2
            }
            Within::Quoted(..) | Within::Triple(_) if text[at] == '\\' => 2,
            Within::Quoted(quote, _) if text[at] == quote => self.end(1),
            Within::Triple(quote) if has(&quote.to_string().repeat(3)) => self.end(3),
            Within::Backquoted if text[at] == '`' => self.end(1),
            Within::Raw(marks) if text[at] == '"' && has(&format!("\"{}", "#".repeat(marks))) => self.end(1 + marks),
            Within::Code => self.code(text, at),
            _ => 1,
        }
    }

    fn end(&mut self, length: usize) -> usize {
        self.within = Within::Code;
        length
    }

    fn begin(&mut self, within: Within, length: usize) -> usize {
        self.within = within;
        length
    }

    fn code(&mut self, text: &[char], at: usize) -> usize {
        let has = |what: &str| what.chars().enumerate().all(|(index, c)| text.get(at + index) == Some(&c));
        let is_python = self.language == Language::Python;
        match text[at] {
            '#' if is_python => self.begin(Within::LineComment, 1),
            '/' if !is_python && has("//") => self.begin(Within::LineComment, 2),
            '/' if !is_python && has("/*") => self.begin(Within::BlockComment(1), 2),
            '/' if self.language == Language::JavaScript => pattern(text, at),
            quote @ ('"' | '\'') if is_python && has(&quote.to_string().repeat(3)) => {
                self.begin(Within::Triple(quote), 3)
            }
            '`' if self.language == Language::JavaScript => self.begin(Within::Quoted('`', true), 1),
            '`' if self.language == Language::Go => self.begin(Within::Backquoted, 1),
            'r' if self.language == Language::Rust && !is_word_end(text, at) => self.raw(text, at),
            '\'' if self.language == Language::Rust => lifetime_or_character(text, at),
            quote @ ('"' | '\'') => self.begin(Within::Quoted(quote, self.language == Language::Rust), 1),
            '(' | '[' | '{' => {
                self.depth += 1;
                1
            }
            ')' | ']' | '}' => {
                self.depth = self.depth.saturating_sub(1);
                1
            }
            _ => 1,
        }
    }

    fn raw(&mut self, text: &[char], at: usize) -> usize {
        let marks = text[at + 1..].iter().take_while(|c| **c == '#').count();
        if text.get(at + 1 + marks) == Some(&'"') { self.begin(Within::Raw(marks), 2 + marks) } else { 1 }
    }
}

/// Reports whether a letter continues a word, except the `b` and `c` before a raw string.
fn is_word_end(text: &[char], at: usize) -> bool {
    let is_word = |at: usize| text.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    match at.checked_sub(1) {
        None => false,
        Some(before) if matches!(text[before], 'b' | 'c') => before > 0 && is_word(before - 1),
        Some(before) => is_word(before),
    }
}

/// Returns the length of a character literal of Rust, or of the quote of a lifetime.
fn lifetime_or_character(text: &[char], at: usize) -> usize {
    if text.get(at + 1) == Some(&'\\') {
        let end = text[at + 2..].iter().skip(1).position(|c| *c == '\'');
        return end.map_or(1, |end| end + 4);
    }
    if text.get(at + 2) == Some(&'\'') { 3 } else { 1 }
}

/// Returns the length of a regular expression of JavaScript, or of a division.
fn pattern(text: &[char], at: usize) -> usize {
    let before = text[..at].iter().rev().find(|c| !c.is_whitespace());
    if before.is_some_and(|c| c.is_alphanumeric() || "_$)]}".contains(*c)) {
        return 1;
    }
    let (mut index, mut in_class) = (at + 1, false);
    while let Some(c) = text.get(index) {
        match c {
            '\\' => index += 1,
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return index + 1 - at,
            _ => {}
        }
        index += 1;
    }
    1
}
