//! Folders of pages that this program writes as a whole, such as a report. A new version is written next to the old one and
//! replaces it. A folder with other content is never changed.

use std::fs::DirEntry;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::staged_folder::Names;
use super::{StagedFolder, TEMPORARY_PREFIX, WriteError, create_folder, write_new};
use crate::read_file;

/// The page to open first.
pub const INDEX_FILE: &str = "index.html";

/// The folder of styles, scripts and icons.
pub const STATIC_FOLDER: &str = "static";

/// The file whose text says of which kind the folder is.
const MARKER_FILE: &str = "static/about.txt";

/// A kind of folder, such as a report.
#[derive(Debug, Clone, Copy)]
pub struct SiteKind<'a> {
    /// The content of the marker file. A folder with another one is never replaced.
    pub marker: &'a str,
    /// The names of the entries of such a folder. All others are the user's, and stay.
    pub entries: &'a [&'a str],
    /// The files in [`STATIC_FOLDER`]: name and content.
    pub files: &'a [(&'a str, &'a str)],
}

/// A folder of pages that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The folder holds files that this program did not write.
    #[error("`{0}` exists and holds other files; nothing was written")]
    Foreign(Utf8PathBuf),
    /// The folder could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The folder.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process writes into the folder.
    #[error("another process is writing to `{0}`")]
    Busy(Utf8PathBuf),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl SiteKind<'_> {
    /// Starts a new version of the folder `out`: its static files, and no page.
    pub fn begin(&self, out: &Utf8Path) -> Result<StagedFolder, SiteError> {
        match self.may_replace(out) {
            Ok(true) => {}
            Ok(false) => return Err(SiteError::Foreign(out.to_owned())),
            Err(source) => return Err(SiteError::Read { path: out.to_owned(), source }),
        }
        let staged = StagedFolder::replacing(out, self.entries)?;
        let folder = staged.path();
        create_folder(&folder.join(STATIC_FOLDER))?;
        write_new(&folder.join(MARKER_FILE), self.marker.as_bytes())?;
        for (name, text) in self.files {
            write_new(&folder.join(STATIC_FOLDER).join(name), text.as_bytes())?;
        }
        Ok(staged)
    }

    /// Returns whether a new version may replace the content of the folder: it is missing, empty, or holds an old version,
    /// whole or interrupted.
    fn may_replace(&self, out: &Utf8Path) -> io::Result<bool> {
        // The whole content is compared: a file of this name in a user's folder must not be enough to clear the folder.
        Ok(is_empty(out)? || self.has_version(out))
    }

    /// Whether the folder, or the unfinished version of a killed process inside of it, has the marker of this kind.
    pub fn has_version(&self, out: &Utf8Path) -> bool {
        let is_marked = |folder: &Utf8Path| {
            let marker = read_file::read(&folder.join(MARKER_FILE), self.marker.len() as u64);
            marker.is_ok_and(|bytes| bytes == self.marker.as_bytes())
        };
        // While the entries are published one by one, one of the two has it.
        is_marked(out) || is_marked(&Names::within(out).staging)
    }
}

/// Whether the folder is missing, or contains nothing but files that an interrupted writer has left.
fn is_empty(out: &Utf8Path) -> io::Result<bool> {
    // Not as UTF-8: a file of the user may have a name of any bytes, and is not a leftover.
    match out.as_std_path().read_dir() {
        Ok(entries) => Ok(entries.collect::<io::Result<Vec<_>>>()?.iter().all(is_leftover)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether an interrupted writer has left an entry of an output folder.
fn is_leftover(entry: &DirEntry) -> bool {
    // Earlier versions created the folder of static files before the marker in it.
    is_unfinished(entry) || is_empty_static(entry)
}

fn is_unfinished(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes())
}

fn is_empty_static(entry: &DirEntry) -> bool {
    entry.file_name() == STATIC_FOLDER
        && entry.path().read_dir().is_ok_and(|entries| entries.flatten().all(|entry| is_unfinished(&entry)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: SiteKind<'_> =
        SiteKind { marker: "A test.\n", entries: &[INDEX_FILE, STATIC_FOLDER], files: &[("style.css", "p {}")] };

    fn publish(out: &Utf8Path, page: &str) -> Result<(), SiteError> {
        let replacement = KIND.begin(out)?;
        write_new(&replacement.path().join(INDEX_FILE), page.as_bytes())?;
        Ok(replacement.publish()?)
    }

    #[test]
    fn a_version_replaces_its_own_kind_only_and_leaves_files_of_others() {
        let parent = tempfile::tempdir().unwrap();
        let parent = Utf8Path::from_path(parent.path()).unwrap();
        let out = parent.join("out");
        publish(&out, "one").unwrap();
        write_new(&out.join("notes.txt"), b"mine").unwrap();
        publish(&out, "two").unwrap();
        let text = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
        assert_eq!(
            (text(INDEX_FILE), text("notes.txt"), text("static/style.css")),
            ("two".into(), "mine".into(), "p {}".into())
        );
        let other = SiteKind { marker: "Another kind.\n", ..KIND };
        assert!(matches!(other.begin(&out), Err(SiteError::Foreign(folder)) if folder == out));
        let users = parent.join("users");
        create_folder(&users.join("static")).unwrap();
        write_new(&users.join("static/about.txt"), b"A test.").unwrap();
        assert!(matches!(publish(&users, "x"), Err(SiteError::Foreign(_))), "the whole text of the marker counts");
        let file = parent.join("file");
        write_new(&file, b"").unwrap();
        assert!(matches!(publish(&file, "x"), Err(SiteError::Foreign(_))));
    }

    #[cfg(unix)]
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the writer has no names that are not UTF-8")]
    fn a_file_with_a_name_of_any_bytes_stays_in_a_replaced_folder_and_is_foreign_in_another_one() {
        use std::os::unix::ffi::OsStrExt as _;

        let name = std::ffi::OsStr::from_bytes(b"mine-\xff");
        let parent = tempfile::tempdir().unwrap();
        let parent = Utf8Path::from_path(parent.path()).unwrap();
        let out = parent.join("out");
        publish(&out, "one").unwrap();
        std::fs::write(out.as_std_path().join(name), "mine").unwrap();
        publish(&out, "two").unwrap();
        assert_eq!(std::fs::read_to_string(out.as_std_path().join(name)).unwrap(), "mine");
        let users = parent.join("users");
        create_folder(&users).unwrap();
        std::fs::write(users.as_std_path().join(name), "mine").unwrap();
        assert!(matches!(publish(&users, "x"), Err(SiteError::Foreign(_))));
    }

    #[test]
    fn a_version_is_known_by_the_whole_content_of_its_marker() {
        let parent = tempfile::tempdir().unwrap();
        let out = Utf8Path::from_path(parent.path()).unwrap().join("out");
        for folder in [Names::within(&out).staging, out.clone()] {
            let marker = folder.join(MARKER_FILE);
            create_folder(marker.parent().unwrap()).unwrap();
            assert!(!KIND.has_version(&out));
            for (content, is_ours) in [("A test.", false), ("A test.\n\n", false), (KIND.marker, true)] {
                write_new(&marker, content.as_bytes()).unwrap();
                assert_eq!(KIND.has_version(&out), is_ours, "{marker}: {content}");
                crate::write::remove(&marker).unwrap();
            }
        }
    }
}
