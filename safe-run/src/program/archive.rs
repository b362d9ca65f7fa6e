//! `safe-run archive`: packs a folder into one file in a format that its name selects, and never overwrites a file.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bzip2::write::BzEncoder;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write::{AtomicFile, Durability, TEMPORARY_PREFIX, WriteError, remove_leftovers_next_to};
use flate2::write::GzEncoder;
#[cfg(unix)]
use nix::sys::signal::Signal;
use walkdir::WalkDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::dispatch;
use super::dispatch::{print, report};
use super::parse_arguments::Archive;

const DESTINATION_EXISTS: i32 = 40;

const FILE_SYSTEM: i32 = 41;

const UNSUPPORTED_FORMAT: i32 = 1;

const MAX_NUMBER: u32 = 10_000;

#[derive(Debug, thiserror::Error)]
enum ArchiveError {
    #[error("the destination is not valid UTF-8")]
    NotUtf8,
    #[error("{0}: {source}", source = .0.source)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Pack(#[from] io::Error),
    #[error("interrupted by signal {0}")]
    Interrupted(usize),
}

/// The signal that asked this program to end; zero for none.
///
/// A signal must not end the program at once: the unfinished archive would remain.
#[derive(Debug, Clone, Default)]
struct Interruption(Arc<AtomicUsize>);

impl Interruption {
    /// Starts to note signals, except those that this process ignores. If that fails, a signal ends the program at once.
    fn from_signals() -> Self {
        let interruption = Self::default();
        #[cfg(unix)]
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].map(|signal| signal as i32) {
            if !crate::is_ignored(signal) {
                let number = usize::try_from(signal).unwrap_or_default();
                let _ = signal_hook::flag::register_usize(signal, interruption.0.clone(), number);
            }
        }
        interruption
    }

    fn check(&self) -> Result<(), ArchiveError> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(ArchiveError::Interrupted(signal)),
        }
    }
}

/// A file that can be neither read nor written after an interruption.
struct Interruptible<T> {
    inner: T,
    interruption: Interruption,
}

impl<R: Read> Read for Interruptible<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interruption.check().map_err(io::Error::other)?;
        self.inner.read(buffer)
    }
}

impl<W: Write> Write for Interruptible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Not the kind `Interrupted`, after which callers try again.
        self.interruption.check().map_err(io::Error::other)?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Runs `archive` and returns the exit code. Conformance vectors pin the messages.
pub(super) fn run(archive: &Archive) -> i32 {
    let source = archive.source.display();
    if !archive.source.exists() {
        report(format_args!("ERROR: Source path does not exist: {source}"));
        return dispatch::USAGE;
    }
    if !archive.source.is_dir() {
        report(format_args!("ERROR: Source path is not a directory: {source}"));
        return dispatch::USAGE;
    }
    let destination = archive.destination.display();
    let Some((stem, format)) = ArchiveFormat::from_path(&archive.destination) else {
        report(format_args!("Error: Unsupported archive format. Use .tar.gz, .tar.bz2, or .zip: {destination}"));
        return UNSUPPORTED_FORMAT;
    };
    let interruption = Interruption::from_signals();
    match write(archive, stem, format, &interruption) {
        Ok(Some(path)) => print(&format!("Archive created: {path}\n")),
        Ok(None) => {
            report(format_args!("ERROR: Destination already exists (no-clobber mode): {destination}"));
            report("File collision detected. Use a different destination or remove --no-clobber flag.");
            DESTINATION_EXISTS
        }
        Err(ArchiveError::Interrupted(signal)) => end_by(signal),
        Err(error) => {
            report(format_args!("ERROR: {error}"));
            FILE_SYSTEM
        }
    }
}

/// Ends this program by a signal, as if it had not been noted.
fn end_by(signal: usize) -> i32 {
    let signal = i32::try_from(signal).unwrap_or_default();
    #[cfg(unix)]
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    128 + signal
}

/// Writes the archive under the first free name. Returns `None` if no allowed name is free.
fn write(
    archive: &Archive,
    stem: &str,
    format: ArchiveFormat,
    interruption: &Interruption,
) -> Result<Option<Utf8PathBuf>, ArchiveError> {
    let destination = Utf8Path::from_path(&archive.destination).ok_or(ArchiveError::NotUtf8)?;
    let extension = &destination.as_str()[stem.len()..];
    let numbered = (1..=MAX_NUMBER).map(|number| Utf8PathBuf::from(format!("{stem}.{number}{extension}")));
    let names = std::iter::once(destination.to_owned()).chain(numbered.take_while(|_| !archive.no_clobber));
    // Packing can take long, so an existing destination is reported before it.
    if archive.no_clobber && destination.symlink_metadata().is_ok() {
        return Ok(None);
    }
    // The destination can be inside the packed folder. Until the archive is finished it has a temporary name there.
    let own_folder = destination.parent().map(|folder| PathBuf::from(folder.as_std_path()));
    remove_leftovers_next_to(destination);
    let mut file = AtomicFile::create(destination)?;
    let packed = pack(&archive.source, format, own_folder.as_deref(), &mut file, interruption);
    // First, because an interruption is also the reason of an error.
    interruption.check()?;
    packed?;
    file.flush()?;
    Ok(file.commit_new(names, Durability::Synced)?)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArchiveFormat {
    TarGz,
    TarBz2,
    Zip,
}

const EXTENSIONS: [(&str, ArchiveFormat); 5] = [
    (".tar.gz", ArchiveFormat::TarGz),
    (".tgz", ArchiveFormat::TarGz),
    (".tar.bz2", ArchiveFormat::TarBz2),
    (".tbz2", ArchiveFormat::TarBz2),
    (".zip", ArchiveFormat::Zip),
];

impl ArchiveFormat {
    /// Returns the path without its extension, and the format of the extension, in upper or lower case.
    pub(super) fn from_path(path: &Path) -> Option<(&str, Self)> {
        let text = path.to_str()?;
        // A user may write `.ZIP`; the name of the archive keeps the case.
        let lower = text.to_ascii_lowercase();
        let (extension, format) = EXTENSIONS.into_iter().find(|(extension, _)| lower.ends_with(extension))?;
        Some((&text[..text.len() - extension.len()], format))
    }
}

/// Writes a folder as an archive. Skips temporary files in `own_folder`, one of which is the archive itself.
fn pack(
    source: &Path,
    format: ArchiveFormat,
    own_folder: Option<&Path>,
    out: &mut impl Write,
    interruption: &Interruption,
) -> io::Result<()> {
    let mut out = Interruptible { inner: out, interruption: interruption.clone() };
    match format {
        ArchiveFormat::TarGz => {
            let mut encoder = GzEncoder::new(out, flate2::Compression::default());
            tar(source, own_folder, &mut encoder)?;
            encoder.finish().map(drop)
        }
        ArchiveFormat::TarBz2 => {
            let mut encoder = BzEncoder::new(out, bzip2::Compression::default());
            tar(source, own_folder, &mut encoder)?;
            encoder.finish().map(drop)
        }
        ArchiveFormat::Zip => {
            // The zip writer seeks back to fill in sizes, so it needs a file; `out` can only append.
            let mut whole = zip(source, own_folder, interruption, tempfile::tempfile()?)?;
            whole.rewind()?;
            io::copy(&mut whole, &mut out).map(drop)
        }
    }
}

/// Returns the entries below a folder with their relative paths. An entry other than a file, folder or link is an error, because the
/// formats store no content for it.
fn entries<'a>(
    source: &'a Path,
    own_folder: Option<&'a Path>,
) -> impl Iterator<Item = io::Result<(walkdir::DirEntry, String)>> + 'a {
    let own = own_folder.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let own = own.and_then(|folder| folder.canonicalize().ok());
    // Sorted, so that the same folder gives the entries in the same order.
    let walk = WalkDir::new(source).min_depth(1).sort_by_file_name().into_iter();
    walk.filter_map(move |entry| {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Some(Err(error.into())),
        };
        let is_temporary = entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX);
        let is_own = is_temporary && entry.path().parent().and_then(|folder| folder.canonicalize().ok()) == own;
        let relative = entry.path().strip_prefix(source).unwrap_or(entry.path()).to_string_lossy();
        // Both formats separate with `/` on every system.
        let relative = if cfg!(windows) { relative.replace('\\', "/") } else { relative.into_owned() };
        let kind = entry.file_type();
        if !(kind.is_file() || kind.is_dir() || kind.is_symlink()) {
            let message = format!("cannot pack `{}`: it is a pipe, a socket or a device", entry.path().display());
            return Some(Err(io::Error::other(message)));
        }
        (!is_own).then_some(Ok((entry, relative)))
    })
}

fn tar(source: &Path, own_folder: Option<&Path>, out: &mut impl Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(out);
    // A followed link could pack files outside of the folder.
    archive.follow_symlinks(false);
    archive.append_dir("./", source)?;
    for entry in entries(source, own_folder) {
        let (entry, relative) = entry?;
        archive.append_path_with_name(entry.path(), relative)?;
    }
    archive.finish()
}

fn zip(source: &Path, own_folder: Option<&Path>, interruption: &Interruption, out: File) -> io::Result<File> {
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
            // The zip writer prints errors of its own file, so the interruption is an error of the source.
            let inner = File::open(entry.path())?.take(u64::MAX);
            io::copy(&mut Interruptible { inner, interruption: interruption.clone() }, &mut archive)?;
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
    fn the_extension_selects_the_format() {
        assert_eq!(ArchiveFormat::from_path(Path::new("a/b.tar.gz")), Some(("a/b", ArchiveFormat::TarGz)));
        assert_eq!(ArchiveFormat::from_path(Path::new("B.TGZ")), Some(("B", ArchiveFormat::TarGz)));
        assert_eq!(ArchiveFormat::from_path(Path::new("b.1.tbz2")), Some(("b.1", ArchiveFormat::TarBz2)));
        assert_eq!(ArchiveFormat::from_path(Path::new("b.zip")), Some(("b", ArchiveFormat::Zip)));
        assert_eq!(ArchiveFormat::from_path(Path::new("b.tar")), None);
    }

    #[test]
    fn an_interrupted_archive_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = Utf8PathBuf::from_path_buf(folder.path().join("file")).unwrap();
        counterproof_store::write::write(&file, b"content", Durability::Cached).unwrap();
        let target = tempfile::tempdir().unwrap();
        for name in ["a.tar.gz", "a.tar.bz2", "a.zip"] {
            let (source, destination) = (folder.path().to_owned(), target.path().join(name));
            let archive = Archive { source, destination, no_clobber: false };
            let (stem, format) = ArchiveFormat::from_path(&archive.destination).unwrap();
            let interruption = Interruption::default();
            interruption.0.store(15, Ordering::Relaxed);
            let error = write(&archive, stem, format, &interruption).unwrap_err();
            assert!(matches!(error, ArchiveError::Interrupted(15)), "{name}: {error}");
            assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 0, "{name}");
            assert!(write(&archive, stem, format, &Interruption::default()).unwrap().is_some());
            std::fs::remove_file(target.path().join(name)).unwrap();
        }
    }
}
