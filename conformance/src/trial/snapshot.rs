//! The files of a folder with their bytes, and what is in archives. Links are not followed, and only files are read: a pipe would
//! be waited for.

use std::collections::BTreeMap;
use std::fs::{self, File, FileType};
use std::io::Read;

use bzip2::read::BzDecoder;
use camino::{Utf8Path, Utf8PathBuf};
use flate2::read::GzDecoder;
use walkdir::WalkDir;
use zip::ZipArchive;

/// Every file and folder below a folder by its path relative to it; of a file the bytes, of an archive the names within.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) files: BTreeMap<Utf8PathBuf, Contents>,
    pub(crate) folders: Vec<Utf8PathBuf>,
}

/// What is in a file, or what it is instead of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contents {
    Bytes(Vec<u8>),
    /// The names of an archive's entries, sorted, without a leading `./`.
    Archive(Vec<String>),
    /// Where a symbolic link leads.
    Link(String),
    /// The kind of what is neither file nor link.
    Other(&'static str),
}

impl Snapshot {
    pub(crate) fn holds(&self, path: &Utf8Path) -> bool {
        self.files.contains_key(path) || self.folders.iter().any(|folder| folder == path)
    }

    /// The files in a folder, and not below it.
    pub(crate) fn in_folder(&self, folder: &Utf8Path) -> impl Iterator<Item = (&str, &Contents)> {
        let within = self.files.iter().filter(move |(path, _)| path.parent() == Some(folder));
        within.filter_map(|(path, contents)| Some((path.file_name()?, contents)))
    }
}

/// Looks at a folder.
pub(crate) fn take(root: &Utf8Path) -> Result<Snapshot, String> {
    let mut snapshot = Snapshot::default();
    for entry in WalkDir::new(root).min_depth(1).sort_by_file_name() {
        let entry = entry.map_err(|error| error.to_string())?;
        let path = Utf8Path::from_path(entry.path()).ok_or("a file has no UTF-8 name")?;
        let relative = path.strip_prefix(root).unwrap_or(path).to_owned();
        if entry.file_type().is_dir() {
            snapshot.folders.push(relative);
        } else {
            let contents = contents(path, entry.file_type()).map_err(|error| format!("`{relative}`: {error}"))?;
            snapshot.files.insert(relative, contents);
        }
    }
    Ok(snapshot)
}

fn contents(path: &Utf8Path, file_type: FileType) -> std::io::Result<Contents> {
    if file_type.is_symlink() {
        return Ok(Contents::Link(path.read_link_utf8()?.into_string()));
    }
    if !file_type.is_file() {
        return Ok(Contents::Other(kind(file_type)));
    }
    let bytes = fs::read(path)?;
    // A file with an archive's name may hold anything.
    Ok(entries(path, &bytes).map_or(Contents::Bytes(bytes), Contents::Archive))
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
    "no file"
}

fn entries(path: &Utf8Path, bytes: &[u8]) -> Option<Vec<String>> {
    let name = path.file_name()?.to_ascii_lowercase();
    let is = |endings: [&str; 2]| endings.iter().any(|ending| name.ends_with(ending));
    let names = if is([".tar.gz", ".tgz"]) {
        tar_entries(GzDecoder::new(bytes))?
    } else if is([".tar.bz2", ".tbz2"]) {
        tar_entries(BzDecoder::new(bytes))?
    } else if is([".zip", ".zip"]) {
        let archive = ZipArchive::new(File::open(path).ok()?).ok()?;
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

    use super::*;

    #[test]
    fn links_and_pipes_are_told_and_not_read() {
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
            ("deep/file", Contents::Bytes(b"text".to_vec())),
            ("link", Contents::Link("deep/file".to_owned())),
            ("nowhere", Contents::Link("absent".to_owned())),
            ("pipe", Contents::Other("named pipe")),
            ("socket", Contents::Other("socket")),
            ("way", Contents::Link("deep".to_owned())),
        ];
        let files = expected.map(|(path, contents)| (path.into(), contents)).into();
        assert_eq!(take(root).unwrap(), Snapshot { files, folders: vec!["deep".into()] });
    }
}
