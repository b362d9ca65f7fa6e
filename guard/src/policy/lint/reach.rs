//! What an expression or a pattern reaches: arguments that are read without a guard, and names that a regular expression matches.

use std::fmt::Write as _;
use std::ops::Range;

use counterproof_expression::{Path, Read, ReadKind};
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use crate::policy::model::{CALL, CelCondition};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unguarded {
    pub(super) span: Range<usize>,
    /// The argument, such as `path`, or `options.force` for a field in an argument.
    pub(super) argument: String,
    pub(super) guard: String,
}

/// Words that cannot follow a point.
const RESERVED: [&str; 4] = ["true", "false", "null", "in"];

/// Returns the arguments without which an expression fails. `given` are the keys that the other conditions of the rule require.
pub(super) fn unguarded_arguments(condition: &CelCondition, given: &[&str]) -> Vec<Unguarded> {
    let expression = condition.expression();
    let is_argument = |path: &Path| path.variable == CALL && path.fields.len() > 1 && path.fields[0] == "args";
    let is_given = |path: &Path| path.fields.len() == 2 && given.contains(&path.fields[1].as_str());
    let mut reads: Vec<Read> = expression.reads();
    reads.retain(|read| read.kind == ReadKind::Required && is_argument(&read.path) && !is_given(&read.path));
    reads.sort_by_key(|read| read.span.start);
    let mut missing: Vec<&Read> = Vec::new();
    for read in &reads {
        // Only arguments without which the whole expression fails: `has(…) &&` and `||` guard them.
        if !missing.iter().any(|other| other.path == read.path) && expression.fails_without(&read.path) {
            missing.push(read);
        }
    }
    // A field in an argument also needs the guards of what it is in.
    let is_within =
        |inner: &Path, outer: &Path| inner.fields.len() > outer.fields.len() && inner.fields.starts_with(&outer.fields);
    let innermost = missing.iter().filter(|read| !missing.iter().any(|other| is_within(&other.path, &read.path)));
    innermost
        .map(|read| {
            let mut outer: Vec<&Path> = missing.iter().map(|other| &other.path).collect();
            outer.retain(|path| **path == read.path || is_within(&read.path, path));
            outer.sort_by_key(|path| path.fields.len());
            let guards: Vec<String> = outer.into_iter().map(|path| guard(&path.fields)).collect();
            Unguarded {
                span: read.span.clone(),
                argument: read.path.fields[1..].join("."),
                guard: format!("{} && …", guards.join(" && ")),
            }
        })
        .collect()
}

fn guard(fields: &[String]) -> String {
    let Some((name, outer)) = fields.split_last() else { return String::new() };
    let mut object = "call".to_owned();
    for field in outer {
        let _ = if is_name(field) { write!(object, ".{field}") } else { write!(object, "[{}]", quoted(field)) };
    }
    if is_name(name) { format!("has({object}.{name})") } else { format!("{} in {object}", quoted(name)) }
}

fn is_name(text: &str) -> bool {
    let is_word = text.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    is_word && !text.starts_with(|c: char| c.is_ascii_digit()) && !text.is_empty() && !RESERVED.contains(&text)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// True if every branch of an expression is anchored at both ends of a name.
pub(super) fn is_anchored(regex: &str) -> bool {
    // Expressions that cannot be parsed are errors elsewhere.
    regex_syntax::parse(regex).is_ok_and(|hir| {
        let properties = hir.properties();
        // Read from the syntax tree: `^a|b` starts with `^`, and its second branch is not anchored.
        properties.look_set_prefix().contains(Look::Start) && properties.look_set_suffix().contains(Look::End)
    })
}

/// True if an expression matches every name of one line that is not empty.
pub(super) fn matches_everything(regex: &str) -> bool {
    regex_syntax::parse(regex).is_ok_and(|hir| reaches_all(&hir))
}

fn reaches_all(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Capture(capture) => reaches_all(&capture.sub),
        HirKind::Alternation(branches) => branches.iter().any(reaches_all),
        HirKind::Concat(parts) => {
            let is = |part: Option<&Hir>, look: Look| part.is_some_and(|part| *part.kind() == HirKind::Look(look));
            let (starts, ends) = (is(parts.first(), Look::Start), is(parts.last(), Look::End));
            let inner = &parts[usize::from(starts)..parts.len() - usize::from(ends)];
            if starts && ends { all_any(inner) } else { inner.iter().all(is_optional) || all_any(inner) }
        }
        // One anchor alone, or a character of any kind, is found in every name.
        HirKind::Look(look) => matches!(look, Look::Start | Look::End),
        HirKind::Class(class) => is_any(class),
        _ => is_optional(hir) || all_any(std::slice::from_ref(hir)),
    }
}

/// True if the parts match any text: one of them repeats any character, and the others may be empty.
fn all_any(parts: &[Hir]) -> bool {
    let is_all = |part: &Hir| match part.kind() {
        HirKind::Repetition(Repetition { min: 0 | 1, max: None, sub, .. }) => {
            matches!(sub.kind(), HirKind::Class(class) if is_any(class))
        }
        HirKind::Capture(capture) => all_any(std::slice::from_ref(&capture.sub)),
        _ => false,
    };
    let repeating = parts.iter().position(is_all);
    repeating.is_some_and(|at| parts.iter().enumerate().all(|(index, part)| index == at || is_optional(part)))
}

/// True if an expression matches the empty text at any place.
fn is_optional(hir: &Hir) -> bool {
    hir.properties().minimum_len() == Some(0) && hir.properties().look_set().is_empty()
}

/// True for a class of all characters, possibly without line ends.
fn is_any(class: &Class) -> bool {
    // Names are text, so the expressions of a policy match Unicode and never bytes.
    let Class::Unicode(class) = class else { return false };
    let mut missing = class.clone();
    missing.negate();
    missing.iter().all(|range| matches!(range.start(), '\n' | '\r') && matches!(range.end(), '\n' | '\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, given: &[&str]) -> Vec<(String, String)> {
        let condition = CelCondition::compile(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
        let found = unguarded_arguments(&condition, given);
        found.into_iter().map(|it| (text[it.span].to_owned(), it.guard)).collect()
    }

    #[test]
    fn each_argument_is_reported_once_with_all_of_its_guards() {
        for (text, expected) in [
            ("call.args.path == 'a' || call.args['path'] == 'b'", vec![("call.args.path", "has(call.args.path) && …")]),
            (
                "call.args.a == 1 && call.args.b == 2",
                vec![("call.args.a", "has(call.args.a) && …"), ("call.args.b", "has(call.args.b) && …")],
            ),
            (
                "call.args.options.force == true",
                vec![("call.args.options.force", "has(call.args.options) && has(call.args.options.force) && …")],
            ),
            (
                "call.args['content-type'] == 'x'",
                vec![("call.args['content-type']", "'content-type' in call.args && …")],
            ),
            (
                "call.args['it\\'s'].x == 1",
                vec![("call.args['it\\'s'].x", "'it\\'s' in call.args && has(call.args['it\\'s'].x) && …")],
            ),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|(part, guard)| (part.to_owned(), guard.to_owned())).collect();
            assert_eq!(found(text, &[]), expected, "{text}");
        }
    }

    #[test]
    fn guards_and_required_keys_are_considered() {
        assert_eq!(found("has(call.args.path) && call.args.path == 'a'", &[]), []);
        assert_eq!(found("call.args.path == 'a'", &["path"]), []);
        assert_eq!(found("call.args.path.name == 'a'", &["path"]).len(), 1);
        assert_eq!(found("call.tool_name == 'a' && run.principal != null", &[]), []);
    }

    #[test]
    fn the_guards_are_expressions_that_leave_no_warning() {
        for text in
            ["call.args['a b'].c == 1", "call.args['in'] == 1", "call.args.a.b.c == 1", "call.args['it\\'s'] == 1"]
        {
            let found = unguarded_arguments(&CelCondition::compile(text).unwrap(), &[]);
            let guarded = found[0].guard.replace('…', text);
            assert_eq!(unguarded_arguments(&CelCondition::compile(&guarded).unwrap(), &[]), [], "{guarded}");
        }
    }

    #[test]
    fn every_branch_is_anchored_or_the_expression_is_not() {
        for regex in ["^read$", "^(read|list)$", "^read$|^list$", r"\Aread\z", "^(?:a|b.*)$", "(?i)^a$", "^$"] {
            assert!(is_anchored(regex), "{regex}");
        }
        for regex in
            ["read", "^read", "read$", "^read|list$", r"a\$|\^b", "[^$]", "^a$|b", "(?m)^a$", "(^|x)a$", "a^b$"]
        {
            assert!(!is_anchored(regex), "{regex}");
        }
    }

    #[test]
    fn expressions_that_match_every_name_are_recognised() {
        for regex in [
            "^.*$",
            ".*",
            "",
            "^",
            "$",
            "^.*",
            ".*$",
            "a*",
            ".",
            ".+",
            "^(.+)$",
            "(?s)^.*$",
            r"^[\s\S]*$",
            "^a?.*$",
            "x|.*",
        ] {
            assert!(matches_everything(regex), "{regex}");
        }
        for regex in ["^a.*$", ".*a", "^[a-z]*$", "a+", "^.?$", "^..+$", r"\b", "^a*$", "(?-u)^[a-z]$"] {
            assert!(!matches_everything(regex), "{regex}");
        }
    }
}
