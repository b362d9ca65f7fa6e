//! Paths as a run folder may hold them: relative to it, with forward slashes, and without the names of this machine.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// `target`, seen from the folder `from`. Both must be absolute and free of `..`.
///
/// Where the two share nothing but the root, the way between them would spell out the whole of `target`; then only its
/// last name is given.
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

/// The absolute form of a path: with symbolic links followed where it exists, by its words alone where it does not.
pub(crate) fn absolute(path: &Utf8Path) -> Utf8PathBuf {
    path.canonicalize_utf8().or_else(|_| camino::absolute_utf8(path)).unwrap_or_else(|_| path.to_owned())
}

/// A relative path as seen from the folder `to`, where it was seen from the folder `from`; both must be absolute.
pub(crate) fn moved(path: &str, from: &Utf8Path, to: &Utf8Path) -> String {
    if Utf8Path::new(path).components().count() < 2 && !path.starts_with("..") {
        // A name alone says that the way to it is not to be told.
        return path.to_owned();
    }
    relative(&plain(&from.join(path)), &plain(to))
}

/// A path without `.` and `..`, by its words alone.
fn plain(path: &Utf8Path) -> Utf8PathBuf {
    let mut plain = Utf8PathBuf::new();
    for component in path.components() {
        match component {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => drop(plain.pop()),
            other => plain.push(other.as_str()),
        }
    }
    plain
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn way(target: &str, from: &str) -> String {
        relative(Utf8Path::new(target), Utf8Path::new(from))
    }

    #[test]
    fn the_way_goes_up_and_down() {
        assert_eq!(way("/w/cases.json", "/w/runs/new/r1"), "../../../cases.json");
        assert_eq!(way("/w/runs/new/r1/cases.json", "/w/runs/new/r1"), "cases.json");
        assert_eq!(way("/w/runs", "/w/runs/new/r1"), "../..");
        assert_eq!(way("/w", "/w"), ".");
    }

    #[test]
    fn a_path_may_be_seen_from_elsewhere() {
        let moved = |path: &str, to: &str| moved(path, Utf8Path::new("/w/a/new/r1"), Utf8Path::new(to));
        assert_eq!(moved("../../../cases.json", "/w/runs/new/r2"), "../../../cases.json");
        assert_eq!(moved("../../cases.json", "/w/r"), "../a/cases.json");
        assert_eq!(moved("cases.json", "/elsewhere/r"), "cases.json");
    }

    #[test]
    fn nothing_of_the_machine_is_told_where_only_the_root_is_shared() {
        assert_eq!(way("/home/someone/cases.json", "/tmp/runs/new/r1"), "cases.json");
        assert_eq!(way("/", "/tmp/runs"), ".");
    }
}
