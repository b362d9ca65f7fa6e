//! The way from one folder to another path.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// Returns a path relative to a folder: both are absolute, or relative to the same folder. `None` if there is no way, such as
/// between two Windows drives, or if it is not known, because the folder is reached through `..`.
pub fn relative_path(folder: &Utf8Path, path: &Utf8Path) -> Option<Utf8PathBuf> {
    let (from, to): (Vec<_>, Vec<_>) = (folder.components().collect(), path.components().collect());
    let shared = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
    let has_way = from[shared..].iter().all(|part| matches!(part, Utf8Component::Normal(_)))
        && to[shared..].iter().all(|part| matches!(part, Utf8Component::Normal(_) | Utf8Component::ParentDir));
    let up = from[shared..].iter().map(|_| "..");
    let down = to[shared..].iter().map(Utf8Component::as_str);
    has_way.then(|| up.chain(down).collect())
}

/// Whether a name that others chose is the path of a file in a folder, so that it does not lead out of it.
pub fn is_plain_path(name: &str) -> bool {
    let is_plain = |part: Utf8Component| matches!(part, Utf8Component::Normal(_));
    let is_file = !name.is_empty() && !name.ends_with('/') && !name.contains('\\');
    is_file && Utf8Path::new(name).components().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_lead_up_and_down() {
        for (folder, path, expected) in [
            ("/a/history", "/a/nights/1", Some("../nights/1")),
            ("/a", "/a/b", Some("b")),
            ("/a/b", "/a", Some("..")),
            ("/a", "/a", Some("")),
            ("runs/new/r", "runs/cases.json", Some("../../cases.json")),
            ("runs/new/r", "../cases.json", Some("../../../../cases.json")),
            ("../runs", "cases.json", None),
            ("/a", "b", None),
            ("a", "/b", None),
        ] {
            let found = relative_path(Utf8Path::new(folder), Utf8Path::new(path));
            assert_eq!(found.as_deref().map(Utf8Path::as_str), expected, "{folder} {path}");
        }
    }
}
