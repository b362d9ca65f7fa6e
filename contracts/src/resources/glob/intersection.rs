//! Whether two patterns can match the same path.
//!
//! Both levels are the same question about two sequences in which some elements stand for any number of elements: names of a
//! path with `**`, and characters of a name with `*`. A table says for each pair of rests whether both can match the same rest.

use super::pattern::{Name, Token};

/// True if some path matches both lists of names.
pub(super) fn of_paths(a: &[Name], b: &[Name]) -> bool {
    let is_any = |name: &Name| matches!(name, Name::Any);
    intersect(a, b, is_any, Name::is_satisfiable, |a, b| match (a, b) {
        (Name::Tokens(a), Name::Tokens(b)) => of_names(a, b),
        (Name::Any, other) | (other, Name::Any) => other.is_satisfiable(),
    })
}

/// True if some name matches both lists of tokens. Names are not empty, which needs no check: a list that matches the empty name
/// has only stars, and also matches every other one.
fn of_names(a: &[Token], b: &[Token]) -> bool {
    let is_star = |token: &Token| matches!(token, Token::Star);
    let is_satisfiable = |token: &Token| !matches!(token, Token::One(characters) if characters.is_empty());
    intersect(a, b, is_star, is_satisfiable, |a, b| match (a, b) {
        (Token::One(a), Token::One(b)) => a.overlaps(b),
        (Token::Star, other) | (other, Token::Star) => is_satisfiable(other),
    })
}

/// True if some sequence matches both patterns. `is_any` elements match any number of elements; all others match one.
/// `is_satisfiable` is true for an element that matches something, and `overlap` for two elements that match the same.
fn intersect<T>(
    a: &[T],
    b: &[T],
    is_any: impl Fn(&T) -> bool,
    is_satisfiable: impl Fn(&T) -> bool,
    overlap: impl Fn(&T, &T) -> bool,
) -> bool {
    // The row of the rest of `a` after the current element: for each rest of `b`, whether both match something.
    let mut below = vec![false; b.len() + 1];
    for at in (0..=a.len()).rev() {
        let mut row = vec![false; b.len() + 1];
        for other in (0..=b.len()).rev() {
            row[other] = match (a.get(at), b.get(other)) {
                (None, None) => true,
                // The element stands for nothing, or for what the other element matches.
                (Some(x), y) if is_any(x) => below[other] || y.is_some_and(|y| is_satisfiable(y) && row[other + 1]),
                (x, Some(y)) if is_any(y) => row[other + 1] || x.is_some_and(|x| is_satisfiable(x) && below[other]),
                (Some(x), Some(y)) => below[other + 1] && overlap(x, y),
                _ => false,
            };
        }
        below = row;
    }
    below[0]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::resources::glob::PathPattern;

    fn intersect(a: &str, b: &str) -> bool {
        let (a, b) = (PathPattern::parse(a).unwrap(), PathPattern::parse(b).unwrap());
        assert_eq!(a.intersects(&b), b.intersects(&a));
        a.intersects(&b)
    }

    /// Matches by trying everything, as a check of the table above.
    fn matches(pattern: &PathPattern, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        pattern.names().iter().any(|alternative| matches_names(alternative, &names))
    }

    fn matches_names(pattern: &[Name], names: &[&str]) -> bool {
        match (pattern, names) {
            ([], []) => true,
            ([Name::Any, rest @ ..], _) => (0..=names.len()).any(|skipped| matches_names(rest, &names[skipped..])),
            ([Name::Tokens(tokens), rest @ ..], [name, names @ ..]) => {
                matches_name(tokens, &name.chars().collect::<Vec<_>>()) && matches_names(rest, names)
            }
            _ => false,
        }
    }

    fn matches_name(tokens: &[Token], name: &[char]) -> bool {
        match (tokens, name) {
            ([], []) => true,
            ([Token::Star, rest @ ..], _) => (0..=name.len()).any(|skipped| matches_name(rest, &name[skipped..])),
            ([Token::One(characters), rest @ ..], [char, name @ ..]) => {
                characters.contains(*char) && matches_name(rest, name)
            }
            _ => false,
        }
    }

    /// Returns all sequences of at most `length` of the elements, joined, without the empty one.
    fn sequences(elements: &[&str], separator: &str, length: usize) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let mut last = vec![String::new()];
        for _ in 0..length {
            let longer = |start: &String| {
                let start = if start.is_empty() { String::new() } else { format!("{start}{separator}") };
                elements.iter().map(move |element| format!("{start}{element}")).collect::<Vec<_>>()
            };
            last = last.iter().flat_map(longer).collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    #[test]
    fn patterns_that_share_a_path_intersect() {
        for (a, b) in [
            ("src/memory/*", "src/**/pool.rs"),
            ("src/**", "src"),
            ("**", "a/b/c"),
            ("a/**/z", "a/z"),
            ("a*b", "*ab"),
            ("[a-m]x", "?[x-z]"),
            ("{a,b}.rs", "{b,c}.*"),
            ("**/a/**", "**/b/**"),
            ("*a*", "*b*"),
            ("/home/x/src/*", "/home/**/main.rs"),
            (r"\*", "?"),
        ] {
            assert!(intersect(a, b), "{a} {b}");
        }
        for (a, b) in [
            ("src/memory/*", "src/memory/sub/x"),
            ("src", "src/a"),
            ("a*b", "a*c"),
            ("[!a]x", "ax"),
            ("*.rs", "*.toml"),
            ("a/**/b", "a/**/c"),
            ("[a-c]", "[d-f]"),
            (r"\*", "a"),
            ("**/x/*", "a/y"),
        ] {
            assert!(!intersect(a, b), "{a} {b}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        // A shortest common name has at most one character for each token, and all of these are tried.
        #[test]
        fn names_intersect_exactly_if_some_name_matches_both(
            a in prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "*", "?", "[ab]", "[!a]", "[b-c]", "{a,bc}"]), 1..4),
            b in prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "*", "?", "[ab]", "[!b]", "{,c}b"]), 1..4),
        ) {
            let texts = (a.concat(), b.concat());
            prop_assume!(!texts.0.contains("**") && !texts.1.contains("**"));
            let (a, b) = (PathPattern::parse(&texts.0).unwrap(), PathPattern::parse(&texts.1).unwrap());
            let names = sequences(&["a", "b", "c", "d"], "", 6);
            let witness = names.iter().find(|name| matches(&a, name) && matches(&b, name));
            prop_assert_eq!(a.intersects(&b), witness.is_some(), "{:?} {:?}", texts, witness);
        }

        #[test]
        fn paths_intersect_exactly_if_some_path_matches_both(
            a in prop::collection::vec(prop::sample::select(vec!["a", "b", "*", "**", "?", "[!a]", "{a,b/c}"]), 1..4),
            b in prop::collection::vec(prop::sample::select(vec!["a", "c", "*", "**", "[ab]", "{**,b}"]), 1..4),
        ) {
            let texts = (a.join("/"), b.join("/"));
            let (a, b) = (PathPattern::parse(&texts.0).unwrap(), PathPattern::parse(&texts.1).unwrap());
            let paths = sequences(&["a", "b", "c"], "/", 7);
            let witness = paths.iter().find(|path| matches(&a, path) && matches(&b, path));
            // No names at all match `**`, which is the path of the root and in no list.
            let is_root = |pattern: &PathPattern| pattern.names().iter().any(|names| names.iter().all(|name| *name == Name::Any));
            prop_assert_eq!(a.intersects(&b), witness.is_some() || (is_root(&a) && is_root(&b)), "{:?} {:?}", texts, witness);
        }
    }
}
