//! Detection of a target test that was weakened instead of fixed.
//!
//! The file of the test at the base is compared with the file now. The block of each target test must be the same, and defined as often.
//! Lines outside of test functions may be added but not changed or removed, except imports, and nothing that the target test uses may
//! be defined again. The language is known by the name of the file; in others no line may be changed or removed.
//!
//! This is a comparison of texts. Whether the test ran and passed is for the runner to report.

mod blocks;
mod scan;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use self::blocks::Fit;
use self::blocks::{Block, blocks};
use self::scan::Language;
use super::target::Target;

/// Compares the file of the target test at the base with the file now (`None` if it was deleted or renamed). Returns why the change
/// weakens the test.
pub fn tampered(path: &str, base: &[u8], now: Option<&[u8]>, target: &Target) -> Option<String> {
    let Some(now) = now else { return Some(format!("`{path}` was deleted or renamed")) };
    if base == now {
        return None;
    }
    let (base, now) = (String::from_utf8_lossy(base), String::from_utf8_lossy(now));
    let Some(language) = Language::of_path(path) else {
        let kept = Lines::new(base.lines().map(str::trim_end));
        return kept.lost_in(now.lines()).map(|line| format!("`{path}`: the line `{line}` was changed or removed"));
    };
    let (was, is) = (blocks(language, path, &base), blocks(language, path, &now));
    let targets = was.of_target(target);
    if let Some(why) = changed_block(&targets, &is.blocks) {
        return Some(format!("`{path}`: {why}"));
    }
    let kept =
        Lines::new(was.outside.iter().copied().filter(|line| !language.is_import(line) && !language.is_comment(line)));
    if let Some(line) = kept.lost_in(is.outside.iter().copied()) {
        return Some(format!("`{path}`: the line `{}` outside of the tests was changed or removed", line.trim()));
    }
    rebound(language, &targets, &was.outside, &is.outside)
        .map(|line| format!("`{path}`: the line `{}` replaces what the test uses", line.trim()))
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

/// Finds an added line that names a target test, or defines a name that one uses.
fn rebound<'a>(language: Language, targets: &[&Block<'_>], was: &[&'a str], is: &[&'a str]) -> Option<&'a str> {
    let mut used = BTreeSet::new();
    for target in targets {
        target.lines.iter().for_each(|line| used.extend(scan::words(line)));
    }
    let sources = |lines: &[&'a str]| {
        let mut sources: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (line, source) in lines.iter().filter_map(|line| Some((*line, language.import_source(line)?))) {
            for word in scan::words(line).filter(|word| used.contains(word)) {
                sources.entry(word).or_default().insert(source);
            }
        }
        sources
    };
    let (sources, known_sources) = (sources(is), sources(was));
    let is_moved = |word: &str| {
        let known = known_sources.get(word);
        known.is_some_and(|known| sources.get(word).is_some_and(|now| !now.is_subset(known)))
    };
    let names: BTreeSet<&str> = targets.iter().map(|it| it.own_name()).collect();
    let mut known: BTreeMap<&str, u32> = BTreeMap::new();
    for line in was {
        *known.entry(line.trim_end()).or_default() += 1;
    }
    is.iter().copied().find(|line| {
        if let Some(count) = known.get_mut(line.trim_end()).filter(|count| **count > 0) {
            *count -= 1;
            return false;
        }
        if language.is_comment(line) {
            return false;
        }
        // `C.test_a = …` and `del C.test_a`.
        (language == Language::Python && scan::words(line).any(|word| names.contains(word)))
            || language.replaces_modules(line)
            || language.import_source(line).is_some_and(|_| scan::words(line).any(is_moved))
            || language.defined_names(line).iter().any(|name| used.contains(name))
    })
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
