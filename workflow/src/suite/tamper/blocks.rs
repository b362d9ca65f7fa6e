//! The tests of a source text: the lines of each with its decorators or attributes, and the lines outside of them.

use std::sync::LazyLock;

use regex::Regex;

use super::places::{Place, places};
use super::scan::{CALL, Language, LineStart, SEPARATOR, TITLE, indent};
use crate::suite::read::regex;
use crate::suite::target::Target;
use crate::suite::test_files::is_test_path;

/// A test, from its first decorator to its last line.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// The names of what it is in, and its own.
    pub name: String,
    pub lines: Vec<&'a str>,
}

/// A line outside of tests.
#[derive(Debug, Clone)]
pub(super) struct Outside<'a> {
    pub line: &'a str,
    pub place: Place,
}

#[derive(Debug, Default)]
pub(super) struct Source<'a> {
    pub blocks: Vec<Block<'a>>,
    pub outside: Vec<Outside<'a>>,
}

impl Source<'_> {
    /// Returns the tests that a target names: all of them for a file, or if none of them has its name.
    pub(super) fn of_target(&self, target: &Target) -> Vec<&Block<'_>> {
        self.named_by(target).map_or_else(|| self.blocks.iter().collect(), |it| it.1)
    }

    /// Reports whether the tests that a target names are known.
    pub(super) fn has(&self, target: &Target) -> bool {
        match target {
            Target::Test { .. } => self.named_by(target).is_some(),
            Target::File { .. } => !self.blocks.is_empty(),
        }
    }

    /// Returns the tests that have the name of a target, and how well it fits.
    pub(super) fn named_by(&self, target: &Target) -> Option<(Fit, Vec<&Block<'_>>)> {
        let Target::Test { id, .. } = target else { return None };
        let id = id.split_once('[').filter(|(before, _)| !before.contains(' ')).map_or(id.as_str(), |(id, _)| id);
        let parts: Vec<&str> = id.split(SEPARATORS).map(str::trim).filter(|part| !part.is_empty()).collect();
        let select = |fit: Fit, is_wanted: &dyn Fn(&Block<'_>) -> bool| {
            let found: Vec<&Block<'_>> = self.blocks.iter().filter(|block| is_wanted(block)).collect();
            (!found.is_empty()).then_some((fit, found))
        };
        // The name is the end of the id. Titles of JavaScript can have separators in them.
        let is_named = |block: &Block<'_>| {
            ends_with_title(id, block.own_name())
                .is_some_and(|it| it.is_empty() || it.ends_with(SEPARATORS) || it.ends_with(' '))
        };
        // Of one name in several classes, the one in the class of the id.
        let is_in_id = |parent: &str| parts.contains(&parent) || id.contains(&format!("{parent} "));
        let is_narrow = |block: &Block<'_>| is_named(block) && block.parent().is_some_and(is_in_id);
        // A subtest of Go.
        let is_above = |it: &Block<'_>| parts.contains(&it.own_name()) && it.own_name().starts_with("Test");
        let is_group =
            |it: &Block<'_>| parts.last().is_some_and(|last| it.name.split(SEPARATOR).any(|part| part == *last));
        select(Fit::TestInGroup, &is_narrow)
            .or_else(|| select(Fit::Test, &is_named))
            .or_else(|| select(Fit::Test, &is_above))
            .or_else(|| select(Fit::Group, &is_group))
    }
}

/// How well tests fit to the id of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::suite) enum Fit {
    /// They are in the class or the group of its name.
    Group,
    Test,
    /// The name of their class or group fits too.
    TestInGroup,
}

/// Returns what is before a title at the end of an id. Placeholders of a title, as in `adds %i`, may have any value.
fn ends_with_title<'a>(id: &'a str, title: &str) -> Option<&'a str> {
    static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| regex(r"%[a-zA-Z#]|\$\{[^}]*\}|\$[\w.]+"));
    if let Some(before) = id.strip_suffix(title) {
        return Some(before);
    }
    let mut pieces = PLACEHOLDER.split(title);
    let (first, mut rest) = (pieces.next()?, pieces.peekable());
    rest.peek()?;
    let at = id.find(first).filter(|_| first.contains(char::is_alphanumeric))?;
    let mut left = &id[at + first.len()..];
    for piece in rest {
        left = &left[left.find(piece)? + piece.len()..];
    }
    Some(&id[..at])
}

/// Between the parts of ids of all runners.
const SEPARATORS: [char; 5] = ['.', ':', '/', '›', '>'];

impl Block<'_> {
    pub(super) fn own_name(&self) -> &str {
        self.name.rsplit(SEPARATOR).next().unwrap_or(&self.name)
    }

    /// The classes or groups around it, joined.
    pub(super) fn group(&self) -> &str {
        self.name.strip_suffix(self.own_name()).and_then(|it| it.strip_suffix(SEPARATOR)).unwrap_or("")
    }

    fn parent(&self) -> Option<&str> {
        self.name.rsplit(SEPARATOR).nth(1)
    }
}

/// Reads the tests of a file. Code next to tests in a file that is not for tests alone is neither of them, except test modules of Rust.
pub(super) fn blocks<'a>(language: Language, path: &str, text: &'a str) -> Source<'a> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = language.lines(text);
    let found = match language {
        Language::Python => python(&lines, &starts),
        Language::Rust => braced(&lines, &starts, &rust_name),
        Language::Go => braced(&lines, &starts, &go_name),
        Language::JavaScript => javascript(&lines, &starts),
    };
    let is_of_tests = region(language, path, &lines, &starts);
    let places = places(language, &lines, &starts);
    let outside = |from: usize, to: usize| -> Vec<Outside<'a>> {
        let of_tests = (from..to).filter(|at| is_of_tests(*at));
        of_tests.map(|at| Outside { line: lines[at], place: places[at].clone() }).collect()
    };
    let mut source = Source::default();
    let mut next = 0;
    for (name, from, to) in found {
        source.outside.extend(outside(next, from));
        source.blocks.push(Block { name, lines: lines[from..to].to_vec() });
        next = to;
    }
    source.outside.extend(outside(next, lines.len()));
    source
}

/// Returns which lines belong to tests.
fn region(language: Language, path: &str, lines: &[&str], starts: &[LineStart]) -> impl Fn(usize) -> bool {
    let mut modules = Vec::new();
    if language == Language::Rust {
        let mut at = 0;
        while at < lines.len() {
            let is_module = lines[at].trim_start().starts_with("#[cfg(test)]") && !starts[at].is_inside;
            let Some(open) = (at..lines.len().min(at + 5)).find(|at| is_module && starts[*at].opens) else {
                at += 1;
                continue;
            };
            let end = (open..lines.len()).find(|it| starts[*it].depth_after <= starts[at].depth).unwrap_or(lines.len());
            modules.push(at..=end);
            at = end + 1;
        }
    }
    let is_test_file = modules.is_empty() && is_test_path(path);
    move |at| is_test_file || modules.iter().any(|module| module.contains(&at))
}

/// A name and its lines, from and to. They do not overlap.
type Found = Vec<(String, usize, usize)>;

fn python(lines: &[&str], starts: &[LineStart]) -> Found {
    static DEFINITION: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*(?:async\s+)?def\s+(test\w*)\s*[\[(]"));
    static CLASS: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*class\s+(\w+)"));
    let mut found: Found = Vec::new();
    let mut classes: Vec<(usize, &str)> = Vec::new();
    let is_start = |at: usize| {
        let is_continued = at > 0 && lines[at - 1].ends_with('\\');
        !starts[at].is_inside && starts[at].depth == 0 && !is_continued && !lines[at].trim().is_empty()
    };
    let is_comment = |at: usize| lines[at].trim_start().starts_with('#');
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if !is_start(at) || is_comment(at) {
            at += 1;
            continue;
        }
        classes.retain(|(level, _)| *level < indent(line));
        if let Some(class) = CLASS.captures(line).and_then(|it| it.get(1)) {
            classes.push((indent(line), class.as_str()));
        }
        let Some(name) = DEFINITION.captures(line).and_then(|it| it.get(1)) else {
            at += 1;
            continue;
        };
        let level = indent(line);
        let mut end = at + 1;
        while end < lines.len() && (!is_start(end) || is_comment(end) || indent(lines[end]) > level) {
            end += 1;
        }
        // Empty lines and comments of what follows.
        let is_after = |at: usize| {
            let is_outer = is_start(at) && is_comment(at) && indent(lines[at]) <= level;
            !starts[at].is_inside && (lines[at].trim().is_empty() || is_outer)
        };
        while end > at + 1 && is_after(end - 1) {
            end -= 1;
        }
        // Decorators may have several lines, and comments between them.
        let mut from = at;
        let bottom = found.last().map_or(0, |it| it.2);
        for above in (bottom..at).rev().filter(|above| is_start(*above)) {
            if lines[above].trim_start().starts_with('@') && indent(lines[above]) == level {
                from = above;
            } else if !is_comment(above) {
                break;
            }
        }
        let names = classes.iter().map(|(_, class)| *class).chain([name.as_str()]);
        found.push((names.collect::<Vec<_>>().join(SEPARATOR), from, end));
        at = end;
    }
    found
}

/// Returns the name of the test that a line defines, and the first line of its attributes.
type StartOf = dyn Fn(&[&str], &[LineStart], usize) -> Option<(String, usize)>;

/// Tests of languages with braces, that begin with a line that `name` knows.
fn braced(lines: &[&str], starts: &[LineStart], name: &StartOf) -> Found {
    let mut found: Found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let start = if starts[at].is_inside { None } else { name(lines, starts, at) };
        let Some((name, from)) = start else {
            at += 1;
            continue;
        };
        // The body ends where the depth is again that of the first line.
        let mut end = at;
        let mut has_body = false;
        while end < lines.len() {
            has_body |= starts[end].opens;
            end += 1;
            if has_body && starts[end - 1].depth_after <= starts[at].depth {
                break;
            }
        }
        let bottom = found.last().map_or(0, |it| it.2);
        found.push((name, from.max(bottom), end));
        at = end;
    }
    found
}

fn rust_name(lines: &[&str], starts: &[LineStart], at: usize) -> Option<(String, usize)> {
    static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"^\s*(?:#\[.*\]\s*)?(?:pub(?:\([^)]*\))?\s+)?(?:async\s+|unsafe\s+|const\s+)*fn\s+(\w+)")
    });
    static TEST: LazyLock<Regex> =
        LazyLock::new(|| regex(r"#\[(?:\w+::)*(?:test|rstest|test_case|case|wasm_bindgen_test|bench)\b"));
    let name = FUNCTION.captures(lines[at])?;
    // Attributes of the function, of one or several lines, and comments between them.
    let mut from = at;
    for above in (0..at).rev().filter(|above| !starts[*above].is_inside && starts[*above].depth <= starts[at].depth) {
        let line = lines[above].trim_start();
        if !line.starts_with("#[") && !line.starts_with("//") {
            break;
        }
        from = above;
    }
    // Comments above it are not a part of the test.
    while from < at && lines[from].trim_start().starts_with("//") {
        from += 1;
    }
    let is_test = lines[from..=at].iter().any(|line| TEST.is_match(line));
    is_test.then(|| (name[1].to_owned(), from))
}

fn go_name(lines: &[&str], _starts: &[LineStart], at: usize) -> Option<(String, usize)> {
    static FUNCTION: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^func\s+(?:\(\s*\w*\s*\*?(\w+)\s*\)\s*)?((?:Test|Benchmark|Example|Fuzz)\w*)\s*\("));
    let name = FUNCTION.captures(lines[at])?;
    let own = name.get(1).map(|it| format!("{}{SEPARATOR}", it.as_str())).unwrap_or_default();
    Some((format!("{own}{}", &name[2]), at))
}

/// Tests of JavaScript are calls, `test("title", …)`, within calls of `describe`.
fn javascript(lines: &[&str], starts: &[LineStart]) -> Found {
    let mut found: Found = Vec::new();
    let mut groups: Vec<(usize, String)> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        groups.retain(|(depth, _)| *depth < starts[at].depth);
        // `test.beforeEach` is not a test.
        let is_call = |call: &regex::Captures<'_>| {
            !starts[at].is_inside && ![".before", ".after"].iter().any(|hook| call[0].contains(hook))
        };
        let Some(call) = CALL.captures(lines[at]).filter(is_call) else {
            at += 1;
            continue;
        };
        let mut end = at + 1;
        while end < lines.len() && (starts[end - 1].depth_after > starts[at].depth || starts[end].is_inside) {
            end += 1;
        }
        let titles = lines[at..end].iter().find_map(|line| TITLE.captures(line.trim_start()));
        let title = titles.as_ref().and_then(|it| (1..=3).find_map(|group| it.get(group)));
        let title = title.map_or("", |title| title.as_str());
        if ["describe", "context", "suite"].iter().any(|group| call[1].ends_with(group)) && end > at + 1 {
            groups.push((starts[at].depth, title.to_owned()));
            at += 1;
            continue;
        }
        let names = groups.iter().map(|(_, group)| group.as_str()).chain([title]);
        found.push((names.collect::<Vec<_>>().join(SEPARATOR), at, end));
        at = end;
    }
    found
}
