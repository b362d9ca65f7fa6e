//! Patterns of names, in which `*` stands for any characters: how settings select tools and types of events.

/// Returns true if `*` can be filled in so that the pattern becomes the name.
///
/// ```
/// use counterproof_cases::glob;
///
/// assert!(glob::fits("get_*", "get_order"));
/// assert!(!glob::fits("get_*", "set_order"));
/// ```
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    // Each part goes as far to the left as it can, which leaves the most room for the parts after it.
    let mut parts = rest.split('*').collect::<Vec<_>>();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name) in [("a*", "a"), ("*b", "ab"), ("a*c*e", "abcde"), ("*", ""), ("a**", "ab"), ("*a*a", "aa")]
        {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a*", "b"), ("a*a", "a"), ("a*c*e", "abde"), ("ab", "abc"), ("*a*a", "a")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
