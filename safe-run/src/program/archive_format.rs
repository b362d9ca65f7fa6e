//! The formats of archives. Entries are relative to the folder, sorted, and those of a folder's own kind: links stay links.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use bzip2::write::BzEncoder;
use counterproof_store::write::TEMPORARY_PREFIX;
use flate2::write::GzEncoder;
use walkdir::WalkDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A format of archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    TarGz,
    TarBz2,
    Zip,
}

const ENDINGS: [(&str, Format); 5] = [
    (".tar.gz", Format::TarGz),
    (".tgz", Format::TarGz),
    (".tar.bz2", Format::TarBz2),
    (".tbz2", Format::TarBz2),
    (".zip", Format::Zip),
];

impl Format {
    /// The format that a path's ending names, in letters of either case, and the path before the ending.
    pub(super) fn of(path: &Path) -> Option<(&str, Self)> {
        let text = path.to_str()?;
        let lower = text.to_ascii_lowercase();
        let (ending, format) = ENDINGS.into_iter().find(|(ending, _)| lower.ends_with(ending))?;
        Some((&text[..text.len() - ending.len()], format))
    }
}

/// Writes a folder as an archive. Files that are being written in `own_folder` under a temporary name are left out.
pub(super) fn pack(source: &Path, format: Format, own_folder: Option<&Path>, out: &mut impl Write) -> io::Result<()> {
    match format {
        Format::TarGz => {
            let mut encoder = GzEncoder::new(out, flate2::Compression::default());
            tar(source, own_folder, &mut encoder)?;
            encoder.finish().map(drop)
        }
        Format::TarBz2 => {
            let mut encoder = BzEncoder::new(out, bzip2::Compression::default());
            tar(source, own_folder, &mut encoder)?;
            encoder.finish().map(drop)
        }
        Format::Zip => {
            // Its list comes last and refers back, so it is made where one can go back.
            let mut whole = zip(source, own_folder, tempfile::tempfile()?)?;
            whole.rewind()?;
            io::copy(&mut whole, out).map(drop)
        }
    }
}

/// The entries below a folder with their paths relative to it. One that is no file, folder or link is an error: a format that cannot
/// hold it would leave it out without a word.
fn entries<'a>(
    source: &'a Path,
    own_folder: Option<&'a Path>,
) -> impl Iterator<Item = io::Result<(walkdir::DirEntry, String)>> + 'a {
    let own = own_folder.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let own = own.and_then(|folder| folder.canonicalize().ok());
    let walk = WalkDir::new(source).min_depth(1).sort_by_file_name().into_iter();
    walk.filter_map(move |entry| {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Some(Err(error.into())),
        };
        let is_temporary = entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX);
        let is_own = is_temporary && entry.path().parent().and_then(|folder| folder.canonicalize().ok()) == own;
        let relative = entry.path().strip_prefix(source).unwrap_or(entry.path()).to_string_lossy().into_owned();
        let kind = entry.file_type();
        if !(kind.is_file() || kind.is_dir() || kind.is_symlink()) {
            let wrong = format!("`{}` is a pipe, a socket or a device, which is not packed", entry.path().display());
            return Some(Err(io::Error::other(wrong)));
        }
        (!is_own).then_some(Ok((entry, relative)))
    })
}

fn tar(source: &Path, own_folder: Option<&Path>, out: &mut impl Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(out);
    archive.follow_symlinks(false);
    archive.append_dir("./", source)?;
    for entry in entries(source, own_folder) {
        let (entry, relative) = entry?;
        archive.append_path_with_name(entry.path(), relative)?;
    }
    archive.finish()
}

fn zip(source: &Path, own_folder: Option<&Path>, out: File) -> io::Result<File> {
    let mut archive = ZipWriter::new(out);
    for entry in entries(source, own_folder) {
        let (entry, relative) = entry?;
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        let options =
            options.unix_permissions(permissions(&entry)?).large_file(entry.metadata()?.len() > u64::from(u32::MAX));
        let kind = entry.file_type();
        if kind.is_dir() {
            archive.add_directory(relative, options)?;
        } else if kind.is_symlink() {
            archive.add_symlink(relative, std::fs::read_link(entry.path())?.to_string_lossy(), options)?;
        } else {
            archive.start_file(relative, options)?;
            io::copy(&mut File::open(entry.path())?.take(u64::MAX), &mut archive)?;
        }
    }
    Ok(archive.finish()?)
}

#[cfg(unix)]
fn permissions(entry: &walkdir::DirEntry) -> io::Result<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(entry.metadata()?.permissions().mode() & 0o7777)
}

#[cfg(not(unix))]
fn permissions(_entry: &walkdir::DirEntry) -> io::Result<u32> {
    Ok(0o644)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_names_the_format() {
        assert_eq!(Format::of(Path::new("a/b.tar.gz")), Some(("a/b", Format::TarGz)));
        assert_eq!(Format::of(Path::new("B.TGZ")), Some(("B", Format::TarGz)));
        assert_eq!(Format::of(Path::new("b.1.tbz2")), Some(("b.1", Format::TarBz2)));
        assert_eq!(Format::of(Path::new("b.zip")), Some(("b", Format::Zip)));
        assert_eq!(Format::of(Path::new("b.tar")), None);
    }
}
