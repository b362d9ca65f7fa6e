//! Detection of a target test that was weakened instead of fixed.
//!
//! The file of the test at the base is compared with the file now. The block of each target test must be the same, and defined as often.
//! Lines outside of test functions may be added but not changed or removed, except imports and comments, and nothing that the target
//! test sees and uses may be defined again. Nothing that runs around it may be added. The language is known by the name of the file; in others,
//! and where the test is not found in its file, no line may be changed or removed.
//!
//! This is a comparison of texts. Whether the test ran and passed is for the runner to report.

mod blocks;
mod places;
mod rebound;
mod scan;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

pub(super) use self::blocks::Fit;
use self::blocks::{Block, Outside, blocks};
use self::rebound::rebound;
use self::scan::Language;
use super::read::regex;
use super::target::Target;
use super::test_files::is_test_path;

/// Compares the file of the target test at the base with the file now (`None` if it was deleted or renamed). Returns why the change
/// weakens the test.
pub fn tampered(path: &str, base: &[u8], now: Option<&[u8]>, target: &Target) -> Option<String> {
    let Some(now) = now else { return Some(format!("`{path}` was deleted or renamed")) };
    if base == now {
        return None;
    }
    let (base, now) = (String::from_utf8_lossy(base), String::from_utf8_lossy(now));
    let lost = |line: &str| format!("`{path}`: the line `{}` was changed or removed", line.trim());
    let Some(language) = Language::of_path(path) else {
        return Lines::new(base.lines()).lost_in(now.lines()).map(lost);
    };
    let (was, is) = (blocks(language, path, &base), blocks(language, path, &now));
    let targets = was.of_target(target);
    if let Some(why) = changed_block(&targets, &is.blocks) {
        return Some(format!("`{path}`: {why}"));
    }
    if !was.has(target) {
        // The test may be any line of the file.
        let kept = if is_doctest(path, target) { docstrings(&base) } else { base.lines().collect() };
        if let Some(line) = Lines::new(kept.into_iter()).lost_in(now.lines()) {
            return Some(lost(line));
        }
    }
    let is_free = |it: &&Outside<'_>| it.place.import.is_some() || (!it.place.is_text && language.is_comment(it.line));
    let kept = Lines::new(was.outside.iter().filter(|it| !is_free(it)).map(|it| it.line));
    if let Some(line) = kept.lost_in(is.outside.iter().map(|it| it.line)) {
        return Some(format!("`{path}`: the line `{}` outside of the tests was changed or removed", line.trim()));
    }
    if let Some(name) = wrapped(language, &base, &now) {
        return Some(format!("`{path}`: `{name}` was added, which changes all tests"));
    }
    rebound(language, &base, &targets, &was.outside, &is.outside)
        .map(|line| format!("`{path}`: the line `{}` replaces what the test uses", line.trim()))
}

/// Reports whether the id of a target is that of a doctest in a file of code, `calc.py::calc.add`: functions have no dots in their names.
fn is_doctest(path: &str, target: &Target) -> bool {
    let module = path.strip_suffix(".py").map(|it| it.rsplit('/').next().unwrap_or(it));
    let (Target::Test { id, .. }, Some(module)) = (target, module) else { return false };
    let name = id.split_once(".py::").map_or("", |it| it.1);
    !is_test_path(path) && name.rsplit_once('.').is_some_and(|it| it.0.split('.').any(|part| part == module))
}

/// Returns the lines of Python that begin within a string.
fn docstrings(text: &str) -> Vec<&str> {
    let starts = Language::Python.lines(text);
    text.lines().zip(starts).filter(|(_, start)| start.is_inside).map(|it| it.0).collect()
}

/// Reports whether a file has tests, by its path or by what it defines.
pub fn has_tests(path: &str, text: &[u8]) -> bool {
    let defines = |language| !blocks(language, path, &String::from_utf8_lossy(text)).blocks.is_empty();
    is_test_path(path) || Language::of_path(path).is_some_and(defines)
}

/// Finds what runs around all tests, or replaces their assertions, wherever it is in the file.
fn wrapped(language: Language, base: &str, now: &str) -> Option<String> {
    static MAIN: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^func\s+TestMain\b"));
    static ASSERTION: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"\bmacro_rules!\s*(?:(?:debug_)?assert(?:_eq|_ne)?|panic|matches|unreachable|todo|unimplemented)\b")
    });
    let wrapper = match language {
        Language::Go => &MAIN,
        Language::Rust => &ASSERTION,
        Language::Python | Language::JavaScript => return None,
    };
    let is_added = wrapper.find_iter(now).count() > wrapper.find_iter(base).count();
    wrapper.find(now).filter(|_| is_added).map(|it| it.as_str().to_owned())
}

/// Returns how well the tests of a file fit to a target, if any does.
pub(super) fn fit(path: &str, text: &str, target: &Target) -> Option<Fit> {
    let language = Language::of_path(path)?;
    blocks(language, path, text).named_by(target).map(|it| it.0)
}

/// Finds a target test whose block is another one, or is defined more or less often.
fn changed_block(targets: &[&Block<'_>], now: &[Block<'_>]) -> Option<String> {
    let mut seen = BTreeSet::new();
    for target in targets {
        if !seen.insert(&target.name) {
            continue;
        }
        let texts = |blocks: &mut dyn Iterator<Item = &Block<'_>>| {
            let mut texts: Vec<String> =
                blocks.filter(|it| it.name == target.name).map(|it| it.lines.join("\n")).collect();
            texts.sort();
            texts
        };
        let (was, is) = (texts(&mut targets.iter().copied()), texts(&mut now.iter()));
        if is.is_empty() {
            return Some(format!("the test `{}` was removed, renamed or commented out", target.name));
        }
        if is.len() != was.len() {
            return Some(format!("the test `{}` is defined {} times instead of {}", target.name, is.len(), was.len()));
        }
        if is != was {
            return Some(format!("the test `{}` was edited", target.name));
        }
    }
    None
}

/// Lines that must be in another text in this order.
struct Lines<'a>(Vec<&'a str>);

impl<'a> Lines<'a> {
    fn new(lines: impl Iterator<Item = &'a str>) -> Self {
        Self(lines.map(str::trim_end).filter(|line| !line.is_empty()).collect())
    }

    fn lost_in<'b>(&self, other: impl Iterator<Item = &'b str>) -> Option<&'a str> {
        let mut left = self.0.iter().peekable();
        for line in other {
            left.next_if(|wanted| **wanted == line.trim_end());
        }
        left.next().copied()
    }
}
