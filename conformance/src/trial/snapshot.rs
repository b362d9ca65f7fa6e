//! Takes a snapshot of a folder: the bytes of its files, and the entries of its archives. Links are not followed, and special files
//! are not read, because a pipe would block.

use std::collections::BTreeMap;
use std::fs::FileType;
use std::io::{Cursor, Read};

use bzip2::read::BzDecoder;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use flate2::read::GzDecoder;
use walkdir::WalkDir;
use zip::ZipArchive;

use super::execution::SnapshotError;

/// The content of a folder, by relative path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) files: BTreeMap<Utf8PathBuf, FileContents>,
    pub(crate) folders: Vec<Utf8PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileContents {
    Bytes(Vec<u8>),
    /// The entry names of an archive, sorted, without a leading `./`.
    Archive(Vec<String>),
    /// The target of a symbolic link.
    Link(String),
    Special(&'static str),
}

impl Snapshot {
    pub(crate) fn contains(&self, path: &Utf8Path) -> bool {
        self.files.contains_key(path) || self.folders.iter().any(|folder| folder == path)
    }

    pub(crate) fn in_folder(&self, folder: &Utf8Path) -> impl Iterator<Item = (&str, &FileContents)> {
        let within = self.files.iter().filter(move |(path, _)| path.parent() == Some(folder));
        within.filter_map(|(path, contents)| Some((path.file_name()?, contents)))
    }
}

pub(super) fn take(root: &Utf8Path) -> Result<Snapshot, SnapshotError> {
    let mut snapshot = Snapshot::default();
    for entry in WalkDir::new(root).min_depth(1).sort_by_file_name() {
        let entry = entry?;
        let path = Utf8Path::from_path(entry.path()).ok_or(SnapshotError::NonUtf8Name)?;
        let relative = path.strip_prefix(root).unwrap_or(path);
        // As on every system, since the golden outputs are the same for all.
        let relative =
            Utf8PathBuf::from(if cfg!(windows) { relative.as_str().replace('\\', "/") } else { relative.to_string() });
        if entry.file_type().is_dir() {
            snapshot.folders.push(relative);
        } else {
            let contents = contents(path, entry.file_type())
                .map_err(|source| SnapshotError::Read { path: relative.clone(), source })?;
            snapshot.files.insert(relative, contents);
        }
    }
    Ok(snapshot)
}

fn contents(path: &Utf8Path, file_type: FileType) -> std::io::Result<FileContents> {
    if file_type.is_symlink() {
        return Ok(FileContents::Link(path.read_link_utf8()?.into_string()));
    }
    if !file_type.is_file() {
        return Ok(FileContents::Special(kind(file_type)));
    }
    let bytes = read_file::read(path, read_file::MAX_LARGE_BYTES)?;
    // A file with the extension of an archive can have any content.
    Ok(archive_entries(path, &bytes).map_or(FileContents::Bytes(bytes), FileContents::Archive))
}

#[cfg(unix)]
fn kind(file_type: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    if file_type.is_fifo() {
        "named pipe"
    } else if file_type.is_socket() {
        "socket"
    } else {
        "device"
    }
}

#[cfg(not(unix))]
fn kind(_file_type: FileType) -> &'static str {
    "special file"
}

/// Returns the entry names of an archive, or `None` if the file is not one.
fn archive_entries(path: &Utf8Path, bytes: &[u8]) -> Option<Vec<String>> {
    let name = path.file_name()?.to_ascii_lowercase();
    let has_extension = |extensions: &[&str]| extensions.iter().any(|extension| name.ends_with(extension));
    let names: Vec<String> = if has_extension(&[".tar.gz", ".tgz"]) {
        tar_entries(GzDecoder::new(bytes))?
    } else if has_extension(&[".tar.bz2", ".tbz2"]) {
        tar_entries(BzDecoder::new(bytes))?
    } else if has_extension(&[".zip"]) {
        let archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
        archive.file_names().map(|name| Some(name.ok()?.into_owned())).collect::<Option<_>>()?
    } else {
        return None;
    };
    let plain = names.iter().map(|name| name.trim_start_matches("./").to_owned());
    let mut names: Vec<String> = plain.filter(|name| !name.is_empty()).collect();
    names.sort();
    Some(names)
}

fn tar_entries(reader: impl Read) -> Option<Vec<String>> {
    let mut archive = tar::Archive::new(reader);
    let name = |entry: std::io::Result<tar::Entry<'_, _>>| Some(entry.ok()?.path().ok()?.to_str()?.to_owned());
    archive.entries().ok()?.map(name).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use counterproof_store::write::{Durability, write};

    use std::fs;

    use super::*;

    #[test]
    fn links_and_special_files_are_listed_and_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs::create_dir(root.join("deep")).unwrap();
        write(&root.join("deep/file"), b"text", Durability::Cached).unwrap();
        std::os::unix::fs::symlink("deep/file", root.join("link")).unwrap();
        std::os::unix::fs::symlink("absent", root.join("nowhere")).unwrap();
        std::os::unix::fs::symlink("deep", root.join("way")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        let expected = [
            ("deep/file", FileContents::Bytes(b"text".to_vec())),
            ("link", FileContents::Link("deep/file".to_owned())),
            ("nowhere", FileContents::Link("absent".to_owned())),
            ("pipe", FileContents::Special("named pipe")),
            ("socket", FileContents::Special("socket")),
            ("way", FileContents::Link("deep".to_owned())),
        ];
        let files = expected.map(|(path, contents)| (path.into(), contents)).into();
        assert_eq!(take(root).unwrap(), Snapshot { files, folders: vec!["deep".into()] });
    }

    #[test]
    fn an_archive_is_listed_by_its_entries_and_any_other_content_by_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let put = |name: &str, bytes: &[u8]| write(&root.join(name), bytes, Durability::Cached).unwrap();
        let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        for name in ["./b", "./a"] {
            archive.append_data(&mut header, name, std::io::empty()).unwrap();
        }
        put("good.tgz", &archive.into_inner().unwrap().finish().unwrap());
        put("bad.tar.bz2", b"text");
        put("bad.zip", b"text");
        let snapshot = take(root).unwrap();
        let entries = FileContents::Archive(vec!["a".to_owned(), "b".to_owned()]);
        let text = FileContents::Bytes(b"text".to_vec());
        let files = [("bad.tar.bz2", text.clone()), ("bad.zip", text), ("good.tgz", entries)];
        assert_eq!(snapshot.files, files.map(|(path, contents)| (path.into(), contents)).into());
        assert!(snapshot.contains(Utf8Path::new("bad.zip")) && !snapshot.contains(Utf8Path::new("absent")));
        assert_eq!(snapshot.in_folder(Utf8Path::new("")).count(), 3);
    }
}
