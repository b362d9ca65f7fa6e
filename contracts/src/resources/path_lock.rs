//! Patterns of a file lock as patterns of absolute paths.

use camino::Utf8Path;

use super::glob::escape;

/// Characters that give a name a meaning other than itself.
const SPECIAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// Returns the pattern of absolute paths for one that is relative to `folder`, which is absolute and has no symbolic links.
///
/// Symbolic links are followed up to the first name with a special character, so that two ways to one file overlap. A link
/// behind that is not followed.
pub(super) fn absolute(folder: &Utf8Path, pattern: &str) -> String {
    let (mut path, mut rest) = (folder.to_owned(), pattern);
    while !rest.is_empty() {
        let (name, after) = rest.split_once('/').unwrap_or((rest, ""));
        if name.contains(SPECIAL) {
            break;
        }
        let next = path.join(name);
        // A path that does not exist yet stays as it is written.
        path = next.canonicalize_utf8().unwrap_or(next);
        rest = after;
    }
    let start = escape(path.as_str());
    if rest.is_empty() { start } else { format!("{}/{rest}", start.trim_end_matches('/')) }
}

/// Returns the names of a pattern before the first one with a special character, as a path. `.` if there are none.
pub(super) fn literal_start(pattern: &str) -> String {
    let names: Vec<&str> = pattern.split('/').take_while(|name| !name.contains(SPECIAL)).collect();
    if names.is_empty() { ".".to_owned() } else { names.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

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
