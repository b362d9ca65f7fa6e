//! Which names a regular expression reaches: read from its syntax tree, and not from its text.

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

/// True if every branch of an expression is anchored at both ends of a name. Expressions that cannot be parsed are errors elsewhere.
pub(super) fn is_anchored(regex: &str) -> bool {
    regex_syntax::parse(regex).is_ok_and(|hir| {
        let properties = hir.properties();
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
    let Class::Unicode(class) = class else { return false };
    let mut missing = class.clone();
    missing.negate();
    missing.iter().all(|range| matches!(range.start(), '\n' | '\r') && matches!(range.end(), '\n' | '\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

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
