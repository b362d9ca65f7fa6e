//! The files of a folder with their bytes, and what is in archives.

use std::collections::BTreeMap;
use std::fs::{self, File};
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

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contents {
    Bytes(Vec<u8>),
    /// The names of an archive's entries, sorted, without a leading `./`.
    Archive(Vec<String>),
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
            let contents = contents(path).map_err(|error| format!("`{relative}`: {error}"))?;
            snapshot.files.insert(relative, contents);
        }
    }
    Ok(snapshot)
}

fn contents(path: &Utf8Path) -> std::io::Result<Contents> {
    let bytes = fs::read(path)?;
    // A file with an archive's name may hold anything.
    Ok(entries(path, &bytes).map_or(Contents::Bytes(bytes), Contents::Archive))
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
