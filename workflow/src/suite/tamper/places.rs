//! Where the lines outside of tests are: in which class or group, in which function, and in which import.

use std::rc::Rc;
use std::sync::LazyLock;

use regex::Regex;

use super::scan::{CALL, Language, LineStart, SEPARATOR, TITLE, indent};
use crate::suite::read::regex;

/// Maximum number of lines of an import.
const MAX_IMPORT_LINES: usize = 500;

#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// The classes or groups around the line, joined; empty at the level of the file.
    pub group: Rc<str>,
    /// The line is within a function that is not a group.
    pub is_in_function: bool,
    /// The line begins within a string or a comment.
    pub is_text: bool,
    /// The line is a decorator of the innermost class.
    pub decorates_class: bool,
    /// The whole import that the line is a part of, on one line.
    pub import: Option<Rc<str>>,
}

pub(super) fn places(language: Language, lines: &[&str], starts: &[LineStart]) -> Vec<Place> {
    let mut places = match language {
        Language::Python => python(lines, starts),
        Language::JavaScript => javascript(lines, starts),
        Language::Rust | Language::Go => vec![Place::default(); lines.len()],
    };
    let mut at = 0;
    while at < lines.len() {
        places[at].is_text = starts[at].is_inside;
        let end = import_end(language, lines, starts, at);
        if end > at {
            let parts: Vec<&str> = lines[at..end].iter().map(|line| line.trim()).collect();
            let import: Rc<str> = parts.join(" ").into();
            if language.is_import(&import) {
                places[at..end].iter_mut().for_each(|place| place.import = Some(Rc::clone(&import)));
                at = end;
                continue;
            }
        }
        at += 1;
    }
    places
}

/// Returns the line after what may be an import, which begins at a line.
fn import_end(language: Language, lines: &[&str], starts: &[LineStart], at: usize) -> usize {
    static START: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*(?:pub\b.*)?\b(?:import|from|use|const|let|var)\b"));
    if starts[at].is_inside || !START.is_match(lines[at]) {
        return at;
    }
    let is_open = |line: usize| {
        starts[line].depth_after > starts[at].depth || (language == Language::Python && lines[line].ends_with('\\'))
    };
    let last = (at..lines.len().min(at + MAX_IMPORT_LINES)).find(|line| !is_open(*line));
    last.map_or(at + 1, |last| last + 1)
}

fn joined(names: &[(usize, Option<String>)]) -> Rc<str> {
    names.iter().filter_map(|it| it.1.as_deref()).collect::<Vec<_>>().join(SEPARATOR).into()
}

fn python(lines: &[&str], starts: &[LineStart]) -> Vec<Place> {
    static HEADER: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*(?:async\s+)?(class|def)\s+(\w+)"));
    let mut places: Vec<Place> = Vec::with_capacity(lines.len());
    // Indentation, and the name of a class.
    let mut around: Vec<(usize, Option<String>)> = Vec::new();
    let (mut place, mut decorators) = (Place::default(), Vec::new());
    for (at, line) in lines.iter().enumerate() {
        let is_continued = at > 0 && lines[at - 1].ends_with('\\');
        let is_start = !starts[at].is_inside && starts[at].depth == 0 && !is_continued;
        if is_start && !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            let known = around.len();
            around.retain(|(level, _)| *level < indent(line));
            if known != around.len() {
                place = Place::of(&around);
            }
            places.push(place.clone());
            if let Some(header) = HEADER.captures(line) {
                around.push((indent(line), (&header[1] == "class").then(|| header[2].to_owned())));
                place = Place::of(&around);
                if &header[1] == "class" {
                    for decorator in decorators.drain(..) {
                        places[decorator] = Place { decorates_class: true, ..place.clone() };
                    }
                }
            }
            if line.trim_start().starts_with('@') {
                decorators.push(at);
            } else {
                decorators.clear();
            }
        } else {
            places.push(place.clone());
        }
    }
    places
}

impl Place {
    fn of(around: &[(usize, Option<String>)]) -> Self {
        Self { group: joined(around), is_in_function: around.iter().any(|it| it.1.is_none()), ..Self::default() }
    }
}

fn javascript(lines: &[&str], starts: &[LineStart]) -> Vec<Place> {
    let mut places = Vec::with_capacity(lines.len());
    // The depth of brackets, and the title of a group.
    let mut groups: Vec<(usize, Option<String>)> = Vec::new();
    let mut group: Rc<str> = joined(&groups);
    for (at, line) in lines.iter().enumerate() {
        let known = groups.len();
        // The last line of a group begins within it.
        groups.retain(|(depth, _)| *depth < starts[at].depth);
        if known != groups.len() {
            group = joined(&groups);
        }
        // The brackets of the call and of the function.
        let own_depth = groups.last().map_or(0, |(depth, _)| depth + 2);
        places.push(Place {
            group: Rc::clone(&group),
            is_in_function: starts[at].depth > own_depth,
            ..Place::default()
        });
        let call = CALL.captures(line).filter(|_| !starts[at].is_inside && starts[at].depth_after > starts[at].depth);
        if call.is_some_and(|call| ["describe", "context", "suite"].iter().any(|it| call[1].ends_with(it))) {
            let titles = TITLE.captures(line.trim_start());
            let title = titles.as_ref().and_then(|it| (1..=3).find_map(|group| it.get(group)));
            groups.push((starts[at].depth, Some(title.map_or("", |it| it.as_str()).to_owned())));
            group = joined(&groups);
        }
    }
    places
}
