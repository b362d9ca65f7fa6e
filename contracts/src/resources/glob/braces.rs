//! Alternatives in braces, written out.

use super::PatternError;

/// Maximum number of patterns that one pattern with braces stands for.
const MAX_ALTERNATIVES: usize = 64;

/// Returns the patterns without braces that a pattern stands for.
pub(super) fn expand(pattern: &str) -> Result<Vec<String>, PatternError> {
    let Some(group) = first_group(pattern)? else { return Ok(vec![pattern.to_owned()]) };
    let mut expanded = Vec::new();
    for alternative in group.alternatives {
        // The first group is gone in each of these, so the recursion ends.
        expanded.extend(expand(&format!("{}{alternative}{}", group.before, group.after))?);
        if expanded.len() > MAX_ALTERNATIVES {
            return Err(PatternError::TooManyAlternatives { limit: MAX_ALTERNATIVES });
        }
    }
    Ok(expanded)
}

struct Group<'p> {
    before: &'p str,
    alternatives: Vec<&'p str>,
    after: &'p str,
}

/// Finds the first pair of braces that is not inside another one. Braces in sets and after a backslash have no meaning.
fn first_group(pattern: &str) -> Result<Option<Group<'_>>, PatternError> {
    let (mut depth, mut start, mut part, mut alternatives) = (0_usize, 0, 0, Vec::new());
    let mut chars = pattern.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => _ = chars.next(),
            '[' => {
                let mut is_first = true;
                while let Some((_, inner)) = chars.next() {
                    if inner == '\\' {
                        chars.next();
                    }
                    // A closing bracket at the start of a set is a member.
                    if inner == ']' && !is_first {
                        break;
                    }
                    is_first = is_first && matches!(inner, '!' | '^');
                }
            }
            '{' => {
                if depth == 0 {
                    (start, part) = (at, at + 1);
                }
                depth += 1;
            }
            ',' if depth == 1 => {
                alternatives.push(&pattern[part..at]);
                part = at + 1;
            }
            '}' if depth == 1 => {
                alternatives.push(&pattern[part..at]);
                return Ok(Some(Group { before: &pattern[..start], alternatives, after: &pattern[at + 1..] }));
            }
            '}' if depth == 0 => return Err(PatternError::Unbalanced('}')),
            '}' => depth -= 1,
            _ => {}
        }
    }
    if depth > 0 { Err(PatternError::Unbalanced('{')) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_written_out() {
        let expanded = |pattern: &str| expand(pattern).unwrap();
        assert_eq!(expanded("a"), ["a"]);
        assert_eq!(expanded("a{b,c}d"), ["abd", "acd"]);
        assert_eq!(expanded("{a,b{c,}}/{x,y}"), ["a/x", "a/y", "bc/x", "bc/y", "b/x", "b/y"]);
        assert_eq!(expanded(r"\{a,b\}[{,}]"), [r"\{a,b\}[{,}]"]);
        assert_eq!(expanded(r"[]{]{a}[\]}]"), [r"[]{]a[\]}]"]);
    }

    #[test]
    fn unbalanced_and_exploding_braces_are_errors() {
        assert_eq!(expand("{a"), Err(PatternError::Unbalanced('{')));
        assert_eq!(expand("a}"), Err(PatternError::Unbalanced('}')));
        let error = expand(&"{a,b}".repeat(30)).unwrap_err();
        assert!(matches!(error, PatternError::TooManyAlternatives { .. }));
    }
}
