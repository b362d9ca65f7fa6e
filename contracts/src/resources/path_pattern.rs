//! Patterns of file locks: which are valid, and whether two of them may match the same file.
//!
//! The syntax is the one of the `globset` crate: `*`, `?`, `**` as a whole name, `[a-z]`, `[!a-z]`, `{a,b}` and `\x`. Two
//! patterns are compared by the names before their first special name, so two locks that never match the same file can still
//! exclude each other.

use camino::{Utf8Path, Utf8PathBuf};
use globset::GlobBuilder;

/// Longest pattern of an absolute path, in bytes.
const MAX_BYTES: usize = 8192;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatternError {
    #[error("the pattern is empty")]
    Empty,
    #[error("the pattern has {0} bytes; at most {MAX_BYTES} are allowed")]
    TooLong(usize),
    #[error("the pattern has an empty name: write it without `/` at its end, and without `//`")]
    EmptyName,
    #[error("the pattern has the name `{0}`; write the path without it")]
    Dots(String),
    #[error("`**` next to other characters; write it as a whole name, such as `src/**/x.rs`")]
    DoubleStar,
    #[error("the pattern contains NUL")]
    Nul,
    #[error("{0}")]
    Syntax(globset::ErrorKind),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPattern {
    glob: globset::Glob,
    /// The names before the first special one.
    start: Utf8PathBuf,
    /// True if no name is special: the pattern matches one path.
    is_literal: bool,
}

impl PathPattern {
    /// Parses a pattern. A slash at its start is allowed: the pattern of an absolute path.
    pub(super) fn parse(text: &str) -> Result<Self, PatternError> {
        if text.len() > MAX_BYTES {
            return Err(PatternError::TooLong(text.len()));
        }
        // No path contains NUL, so the pattern would match no path and the lock would protect nothing.
        if text.contains('\0') {
            return Err(PatternError::Nul);
        }
        let relative = text.strip_prefix('/').unwrap_or(text);
        if relative.is_empty() {
            return Err(PatternError::Empty);
        }
        if relative.split('/').any(str::is_empty) {
            return Err(PatternError::EmptyName);
        }
        for part in relative.split(['/', ',']).map(|part| part.trim_start_matches('{').trim_end_matches('}')) {
            // A lock of `a/../b` would compare as one below `a`.
            if matches!(part, "." | "..") {
                return Err(PatternError::Dots(part.to_owned()));
            }
            // Elsewhere `**` means `*`, which is less than its author wants to lock.
            if part.contains("**") && part != "**" {
                return Err(PatternError::DoubleStar);
            }
        }
        let glob = GlobBuilder::new(text).literal_separator(true).backslash_escape(true).empty_alternates(true).build();
        let glob = glob.map_err(|error| PatternError::Syntax(error.kind().clone()))?;
        let names: Vec<&str> = text.split('/').collect();
        let start: Vec<String> = names.iter().map_while(|name| literal(name)).collect();
        Ok(Self { glob, is_literal: start.len() == names.len(), start: start.join("/").into() })
    }

    pub(super) fn may_overlap(&self, other: &Self) -> bool {
        // In doubt, two patterns overlap: an execution that waits loses time, and two that change the same file lose
        // work.
        match (self.is_literal, other.is_literal) {
            (true, true) => self.start == other.start,
            (true, false) => other.matches(&self.start),
            (false, true) => self.matches(&other.start),
            // Two globs are not intersected: their fixed starts decide, which can only be too careful.
            (false, false) => self.start.starts_with(&other.start) || other.start.starts_with(&self.start),
        }
    }

    fn matches(&self, path: &Utf8Path) -> bool {
        // `src/**` locks what is below `src`, which ends if `src` itself is replaced.
        let is_root = || self.glob.glob().ends_with("/**") && path == self.start;
        self.glob.compile_matcher().is_match(path) || is_root()
    }
}

/// Returns the name that a part of a pattern matches. `None` if it has special characters.
fn literal(name: &str) -> Option<String> {
    let (mut text, mut chars) = (String::new(), name.chars());
    while let Some(char) = chars.next() {
        match char {
            '*' | '?' | '[' | '{' | '}' => return None,
            '\\' => text.push(chars.next()?),
            char => text.push(char),
        }
    }
    Some(text)
}

/// Escapes a path, so that it is a pattern of exactly this path.
pub(super) fn escape(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for char in path.chars() {
        if r"*?[]{},\".contains(char) {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

/// Returns the pattern of absolute paths for one that is relative to `folder`, which is absolute and has no symbolic links.
///
/// Symbolic links are followed up to the first special name, so that two ways to one file overlap. A link behind that is not
/// followed.
pub(super) fn absolute(folder: &Utf8Path, pattern: &str) -> String {
    let (mut path, mut rest) = (folder.to_owned(), pattern);
    while !rest.is_empty() {
        let (name, after) = rest.split_once('/').unwrap_or((rest, ""));
        // From here on the pattern matches many paths, which cannot be resolved.
        let Some(name) = literal(name) else { break };
        let next = path.join(name);
        // A path that does not exist yet stays as it is written.
        path = next.canonicalize_utf8().unwrap_or(next);
        rest = after;
    }
    let start = escape(path.as_str());
    if rest.is_empty() { start } else { format!("{}/{rest}", start.trim_end_matches('/')) }
}

/// Returns the names of a pattern before the first special one, as a path. `.` if there are none.
pub(super) fn literal_start(pattern: &str) -> String {
    let names: Vec<String> = pattern.split('/').map_while(literal).collect();
    if names.is_empty() { ".".to_owned() } else { names.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(a: &str, b: &str) -> bool {
        let (a, b) = (PathPattern::parse(a).unwrap(), PathPattern::parse(b).unwrap());
        assert_eq!(a.may_overlap(&b), b.may_overlap(&a));
        a.may_overlap(&b)
    }

    #[test]
    fn patterns_that_may_match_one_path_overlap() {
        for (a, b) in [
            ("src/memory/*", "src/**/pool.rs"),
            ("src/**", "src"),
            ("**", "a/b/c"),
            ("a/**/z", "a/z"),
            ("a*b", "*ab"),
            ("[a-m]x", "?[x-z]"),
            ("{a,b}.rs", "{b,c}.*"),
            ("{a,b/c}", "b/c"),
            ("**/a/**", "**/b/**"),
            ("/home/x/src/*", "/home/**/main.rs"),
            (r"\*", "?"),
            ("a{,.rs}", "a"),
            // In doubt, since only the folders before the first special name are compared.
            ("*.rs", "*.toml"),
            ("a/**/b", "a/**/c"),
            ("src/*", "src/sub/*.rs"),
        ] {
            assert!(overlap(a, b), "{a} {b}");
        }
        for (a, b) in [
            ("src/memory/*", "src/memory/sub/x"),
            ("src/memory/*", "src/other/*"),
            ("src/a*", "srcs/a*"),
            ("src", "src/a"),
            ("a", "b"),
            ("[!a]x", "ax"),
            ("*.rs", "a.toml"),
            (r"\*", "a"),
            (r"a\[1\]/*", "a1/*"),
            ("**/x/*", "a/y"),
        ] {
            assert!(!overlap(a, b), "{a} {b}");
        }
    }

    #[test]
    fn invalid_patterns_are_errors() {
        use globset::ErrorKind;
        for (pattern, error) in [
            ("", PatternError::Empty),
            ("/", PatternError::Empty),
            ("a/", PatternError::EmptyName),
            ("a//b", PatternError::EmptyName),
            ("a/../b", PatternError::Dots("..".to_owned())),
            ("{a,.}/b", PatternError::Dots(".".to_owned())),
            ("a**", PatternError::DoubleStar),
            ("***", PatternError::DoubleStar),
            ("[a", PatternError::Syntax(ErrorKind::UnclosedClass)),
            ("[]", PatternError::Syntax(ErrorKind::UnclosedClass)),
            ("[b-a]", PatternError::Syntax(ErrorKind::InvalidRange('b', 'a'))),
            ("a\\", PatternError::Syntax(ErrorKind::DanglingEscape)),
            ("{a", PatternError::Syntax(ErrorKind::UnclosedAlternates)),
            ("a\0", PatternError::Nul),
        ] {
            assert_eq!(PathPattern::parse(pattern), Err(error), "{pattern:?}");
        }
        assert!(PathPattern::parse(".{github,vscode}/*").is_ok());
        assert_eq!(PathPattern::parse(&"a".repeat(8193)), Err(PatternError::TooLong(8193)));
    }

    #[test]
    fn an_escaped_path_matches_only_itself() {
        let path = r"/a/[x]{1,2}*?\b,c";
        let pattern = PathPattern::parse(&escape(path)).unwrap();
        assert!(pattern.is_literal && pattern.start == path && pattern.matches(path.into()));
    }

    #[test]
    fn links_are_followed_up_to_the_first_special_name() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(temporary.path()).unwrap().canonicalize_utf8().unwrap();
        std::fs::create_dir_all(folder.join("real[1]/sub")).unwrap();
        std::os::unix::fs::symlink("real[1]", folder.join("link")).unwrap();
        for (pattern, expected) in [
            ("link/sub/*.rs", r"real\[1\]/sub/*.rs"),
            ("link", r"real\[1\]"),
            ("link/new/file", r"real\[1\]/new/file"),
            ("*/link/x", "*/link/x"),
            ("{link,b}/x", "{link,b}/x"),
        ] {
            assert_eq!(absolute(&folder, pattern), format!("{folder}/{expected}"), "{pattern}");
        }
        assert_eq!(absolute(Utf8Path::new("/"), "*"), "/*");
    }

    #[test]
    fn a_pattern_starts_with_a_path() {
        for (pattern, start) in [("src/memory/*.rs", "src/memory"), ("a/b", "a/b"), ("**", "."), ("{a,b}/c", ".")] {
            assert_eq!(literal_start(pattern), start);
        }
    }
}
