//! The path of a file without symbolic links, also if the file does not exist.

use camino::{Utf8Path, Utf8PathBuf};

/// Links that are followed before a path counts as a loop.
const MAX_LINKS: u32 = 40;

/// Returns the absolute path of a file without symbolic links. What does not exist has no links.
pub fn real_path(path: &Utf8Path) -> Utf8PathBuf {
    follow(path, MAX_LINKS)
}

fn follow(path: &Utf8Path, links: u32) -> Utf8PathBuf {
    if let Ok(found) = path.canonicalize_utf8() {
        return found;
    }
    let (Some(folder), Some(name), Some(left)) = (path.parent(), path.file_name(), links.checked_sub(1)) else {
        return path.to_owned();
    };
    let folder = if folder.as_str().is_empty() { Utf8Path::new(".") } else { folder };
    match path.read_link_utf8() {
        // The target of the link does not exist yet.
        Ok(target) => follow(&folder.join(target), left),
        Err(_) => follow(folder, links).join(name),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use counterproof_store::write::{Durability, write};

    use super::*;

    #[test]
    fn links_to_files_and_folders_are_followed_whether_or_not_they_exist() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap().canonicalize_utf8().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("folder")).unwrap();
        symlink("../folder/target.db", root.join("real/link.db")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let target = root.join("real/target.db");
        for _ in 0..2 {
            assert_eq!(real_path(&root.join("folder/target.db")), target);
            assert_eq!(real_path(&root.join("folder/link.db")), target);
            assert_eq!(real_path(&root.join("folder/a/b.db")), root.join("real/a/b.db"));
            write(&target, b"", Durability::Cached).unwrap();
        }
        assert_eq!(real_path(&root.join("loop")).file_name(), Some("loop"));
        assert!(real_path(Utf8Path::new("a.db")).is_absolute());
    }
}
