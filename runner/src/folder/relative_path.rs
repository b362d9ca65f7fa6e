//! Relative paths for `run.json`: with forward slashes, and without folder names of this machine.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// Returns the path from the folder `from` to `target`. Both must be absolute and free of `..`.
///
/// Returns only the file name if the two have no common folder below the root: the relative path would otherwise contain the
/// complete path of `target` on this machine.
pub(crate) fn relative(target: &Utf8Path, from: &Utf8Path) -> String {
    let shared = target.components().zip(from.components()).take_while(|(a, b)| a == b).map(|(a, _)| a);
    let has_name = |component: &Utf8Component| matches!(component, Utf8Component::Normal(_));
    let (shared, names) = shared.fold((0, 0), |(all, names), part| (all + 1, names + usize::from(has_name(&part))));
    if names == 0 {
        return target.file_name().unwrap_or(".").to_owned();
    }
    let up = from.components().skip(shared).map(|_| "..");
    let down = target.components().skip(shared).map(|component| component.as_str());
    let path: Vec<&str> = up.chain(down).collect();
    if path.is_empty() { ".".to_owned() } else { path.join("/") }
}

/// Returns the absolute form of a path: canonical if the path exists, lexical otherwise.
pub(crate) fn absolute(path: &Utf8Path) -> Utf8PathBuf {
    path.canonicalize_utf8().or_else(|_| camino::absolute_utf8(path)).unwrap_or_else(|_| path.to_owned())
}

/// Converts a path relative to the folder `from` into one relative to the folder `to`. Both folders must be absolute.
pub(crate) fn rebase_path(path: &str, from: &Utf8Path, to: &Utf8Path) -> String {
    if Utf8Path::new(path).components().count() < 2 && !path.starts_with("..") {
        // A bare file name means that the folder was deliberately left out.
        return path.to_owned();
    }
    relative(&normalised(&from.join(path)), &normalised(to))
}

/// Removes `.` and `..` lexically.
fn normalised(path: &Utf8Path) -> Utf8PathBuf {
    let mut normalised = Utf8PathBuf::new();
    for component in path.components() {
        match component {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => drop(normalised.pop()),
            other => normalised.push(other.as_str()),
        }
    }
    normalised
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn path_to(target: &str, from: &str) -> String {
        relative(Utf8Path::new(target), Utf8Path::new(from))
    }

    #[test]
    fn a_path_may_go_up_and_down() {
        assert_eq!(path_to("/w/cases.json", "/w/runs/new/r1"), "../../../cases.json");
        assert_eq!(path_to("/w/runs/new/r1/cases.json", "/w/runs/new/r1"), "cases.json");
        assert_eq!(path_to("/w/runs", "/w/runs/new/r1"), "../..");
        assert_eq!(path_to("/w", "/w"), ".");
    }

    #[test]
    fn a_path_can_be_rebased() {
        let rebased = |path: &str, to: &str| rebase_path(path, Utf8Path::new("/w/a/new/r1"), Utf8Path::new(to));
        assert_eq!(rebased("../../../cases.json", "/w/runs/new/r2"), "../../../cases.json");
        assert_eq!(rebased("../../cases.json", "/w/r"), "../a/cases.json");
        assert_eq!(rebased("cases.json", "/elsewhere/r"), "cases.json");
    }

    #[test]
    fn without_a_common_folder_only_the_file_name_is_returned() {
        assert_eq!(path_to("/home/someone/cases.json", "/tmp/runs/new/r1"), "cases.json");
        assert_eq!(path_to("/", "/tmp/runs"), ".");
    }
}
