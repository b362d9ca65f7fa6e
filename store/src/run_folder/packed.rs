//! A packed run: its run document, and all its other files in one archive. An object store and a shared file system bill and list by
//! the file, and a run of many cases has two for each.

use std::io::{self, Read as _};

use camino::Utf8Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use super::reader::RUN_FILE;
use crate::write::{self, AtomicFile, Durability, WriteError};
use crate::{is_plain_path, read_file};

/// The archive of a packed run, next to its run document.
pub const RUN_ARCHIVE: &str = "run.zip";

/// Limits of an archive that another machine made.
const MAX_ENTRIES: usize = 5_000_000;
const MAX_BYTES: u64 = 64 << 30;

/// Packs the files of a run folder, except for the run document, into an archive at `archive`. `names` are their paths in the folder.
/// Equal files make equal bytes.
pub fn pack_run(folder: &Utf8Path, names: &[String], archive: &Utf8Path) -> Result<(), WriteError> {
    let mut zip = ZipWriter::new_stream(AtomicFile::create(archive)?);
    let failed = |source: io::Error| WriteError { path: archive.to_owned(), source };
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    for name in names.iter().filter(|name| *name != RUN_FILE) {
        let path = folder.join(name);
        let (mut file, length) = read_file::open(&path).map_err(|source| WriteError { path: path.clone(), source })?;
        let options = options.large_file(length >= u64::from(u32::MAX));
        zip.start_file(name.as_str(), options).map_err(|error| failed(error.into()))?;
        io::copy(&mut file, &mut zip).map_err(failed)?;
    }
    let file = zip.finish().map_err(|error| failed(error.into()))?;
    file.into_inner().commit(Durability::Synced)
}

/// Unpacks the files of a packed run into a folder. Files that are there are replaced. A name that leads out of the folder, an
/// archive that is cut, and a file whose checksum differs are errors.
pub fn unpack_run(archive: &Utf8Path, folder: &Utf8Path) -> io::Result<()> {
    let (file, _) = read_file::open(archive)?;
    let mut zip = ZipArchive::new(io::BufReader::new(file)).map_err(io::Error::from)?;
    if zip.len() > MAX_ENTRIES {
        return Err(io::Error::other(format!("more than {MAX_ENTRIES} files")));
    }
    let mut unpacked = 0;
    for index in 0..zip.len() {
        let entry = zip.by_index(index).map_err(io::Error::from)?;
        let name = entry.name().map_err(io::Error::from)?.into_owned();
        if !is_plain_path(&name) {
            return Err(io::Error::other("an entry is not a file in the run folder"));
        }
        let size = entry.size();
        if size > read_file::MAX_LARGE_BYTES {
            return Err(io::Error::other(format!("`{name}` is larger than {} bytes", read_file::MAX_LARGE_BYTES)));
        }
        let mut bytes = Vec::new();
        // Limited by the size that the index states, which may be wrong.
        entry.take(size + 1).read_to_end(&mut bytes)?;
        unpacked += bytes.len() as u64;
        if unpacked > MAX_BYTES {
            return Err(io::Error::other(format!("more than {MAX_BYTES} bytes")));
        }
        let path = folder.join(&name);
        if let Some(parent) = path.parent() {
            write::create_folder(parent).map_err(|error| error.source)?;
        }
        write::write(&path, &bytes, Durability::Cached).map_err(|error| error.source)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn files_have_equal_bytes_after_unpacking_and_equal_files_make_equal_archives() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        let (run, copy) = (root.join("run"), root.join("copy"));
        let large: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let files: [(&str, &[u8]); 4] = [
            ("c1.json", b"{}\n"),
            ("assets/manifest.json", b""),
            ("assets/large.bin", &large),
            ("assets/\u{e9}.txt", b"x"),
        ];
        write::create_folder(&run.join("assets")).unwrap();
        for (name, bytes) in files {
            write::write(&run.join(name), bytes, Durability::Cached).unwrap();
        }
        write::write(&run.join(RUN_FILE), b"{}", Durability::Cached).unwrap();
        let names: Vec<String> =
            files.iter().map(|(name, _)| (*name).to_owned()).chain([RUN_FILE.to_owned()]).collect();
        let archives = [root.join("a.zip"), root.join("b.zip")];
        for archive in &archives {
            pack_run(&run, &names, archive).unwrap();
        }
        assert_eq!(std::fs::read(&archives[0]).unwrap(), std::fs::read(&archives[1]).unwrap());
        unpack_run(&archives[0], &copy).unwrap();
        for (name, bytes) in files {
            assert_eq!(std::fs::read(copy.join(name)).unwrap(), bytes, "{name}");
        }
        assert!(!copy.join(RUN_FILE).exists());
    }

    #[test]
    fn archives_that_lead_out_of_the_folder_or_are_damaged_are_errors() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        let archive = root.join("run.zip");
        let packed = |name: &str| {
            let mut zip = ZipWriter::new(io::Cursor::new(Vec::new()));
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(b"some text of the file").unwrap();
            zip.finish().unwrap().into_inner()
        };
        for name in ["../evil.json", "/evil.json", "a/../../evil.json", "a\\evil.json", "folder/"] {
            write::write(&archive, &packed(name), Durability::Cached).unwrap();
            assert!(unpack_run(&archive, &root.join("run")).is_err(), "{name}");
        }
        let whole = packed("c1.json");
        let mut changed = whole.clone();
        let at = changed.windows(4).position(|bytes| bytes == b"c1.j").unwrap() + 10;
        changed[at] ^= 0x55;
        for bytes in [&whole[..whole.len() / 2], &changed, b"not an archive"] {
            write::write(&archive, bytes, Durability::Cached).unwrap();
            assert!(unpack_run(&archive, &root.join("run")).is_err());
        }
        assert!(!root.join("evil.json").exists());
    }
}
