//! Opens and reads files of other programs: the only code that does, next to `confined_path`.
//!
//! Only regular files are opened inside of folders: a pipe would block forever, and a device may never end. A file that is
//! read whole has a limit, because a hostile one would take all memory.

use std::fs::{File, Metadata};
use std::io::{self, Read};

use camino::Utf8Path;

/// Maximum size of one document of a run folder, such as an artifact, `run.json` or a saved request.
pub const MAX_DOCUMENT_BYTES: u64 = 256 << 20;

/// Maximum size of an evaluation, a cases file, or the record of a command.
pub const MAX_LARGE_BYTES: u64 = 1 << 30;

/// Maximum size of a configuration, of labels to read, or of certificates.
pub const MAX_SMALL_BYTES: u64 = 16 << 20;

/// Opens a regular file for reading, and returns its length at this time. Symbolic links are followed.
pub fn open(path: &Utf8Path) -> io::Result<(File, u64)> {
    let file = open_without_waiting(path)?;
    let found = file.metadata()?;
    if found.is_file() { Ok((file, found.len())) } else { Err(not_a_file(&found)) }
}

/// Opens a regular file, whose name may be any bytes, and does not follow a symbolic link at its end.
#[cfg(target_os = "linux")]
pub fn open_exact(path: &std::path::Path) -> io::Result<(File, Metadata)> {
    use rustix::fs::{Mode, OFlags};

    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if found.is_file() { Ok((file, found)) } else { Err(not_a_file(&found)) }
}

/// Opens a regular file, whose name may be any bytes, and does not follow a symbolic link at its end.
#[cfg(not(target_os = "linux"))]
pub fn open_exact(path: &std::path::Path) -> io::Result<(File, Metadata)> {
    let found = path.symlink_metadata()?;
    if found.is_file() { Ok((File::open(path)?, found)) } else { Err(not_a_file(&found)) }
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Utf8Path, limit: u64) -> io::Result<Vec<u8>> {
    let (file, length) = open(path)?;
    read_to_limit(file, length, limit)
}

/// Reads the text of a regular file of at most `limit` bytes.
pub fn read_text(path: &Utf8Path, limit: u64) -> io::Result<String> {
    text(read(path, limit)?)
}

/// Opens a file that a person named, for reading from its start to its end. It may be a pipe too, such as `<(command)` of a shell.
pub fn open_argument(path: &Utf8Path) -> io::Result<File> {
    // This waits for the writer of a pipe, as all programs do that a shell starts.
    let file = File::open(path)?;
    let found = file.metadata()?;
    if found.is_dir() { Err(not_a_file(&found)) } else { Ok(file) }
}

/// Reads a file that a person named, of at most `limit` bytes. It may be a pipe too, such as `<(command)` of a shell.
pub fn read_argument(path: &Utf8Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_argument(path)?;
    let length = file.metadata()?.len();
    read_to_limit(file, length, limit)
}

/// Reads the text of a file that a person named, of at most `limit` bytes.
pub fn read_text_argument(path: &Utf8Path, limit: u64) -> io::Result<String> {
    text(read_argument(path, limit)?)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// Reads an open file of this length, which may be wrong, and fails if it has more than `limit` bytes.
pub fn read_to_limit(file: File, length: u64, limit: u64) -> io::Result<Vec<u8>> {
    let large = |found: String| {
        let message = format!("{found} is more than the limit of {limit} bytes");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    // A file that states its length is refused before any byte is read.
    if length > limit {
        return Err(large(format!("{length} bytes")));
    }
    let bytes = crate::confined_path::read_to_end(&mut file.take(limit.saturating_add(1)), length)?;
    // A pipe has no length, and a file can grow.
    if bytes.len() as u64 > limit { Err(large("the content".to_owned())) } else { Ok(bytes) }
}

fn not_a_file(found: &Metadata) -> io::Error {
    let what = if found.is_dir() { "a folder" } else { "a pipe, a socket or a device" };
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}; a regular file is needed here"))
}

/// Opening a pipe must not wait for a writer, and a terminal must not become that of this process.
#[cfg(target_os = "linux")]
fn open_without_waiting(path: &Utf8Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};

    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from(rustix::fs::open(path.as_std_path(), flags, Mode::empty())?))
}

/// Other systems have no such flags in the standard library.
#[cfg(not(target_os = "linux"))]
fn open_without_waiting(path: &Utf8Path) -> io::Result<File> {
    let found = std::fs::metadata(path)?;
    if found.is_file() { File::open(path) } else { Err(not_a_file(&found)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::{Durability, write};

    #[cfg(target_os = "linux")]
    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe").as_std_path(), kind, mode, 0).unwrap();
        for path in [root, &root.join("pipe"), Utf8Path::new("/dev/zero")] {
            let error = read(path, 10).unwrap_err().to_string();
            assert!(error.contains("a regular file is needed here"), "{path}: {error}");
        }
    }

    #[test]
    fn a_file_over_the_limit_is_rejected_with_both_sizes() {
        let folder = tempfile::tempdir().unwrap();
        let path = &Utf8Path::from_path(folder.path()).unwrap().join("file");
        write(path, b"12345", Durability::Cached).unwrap();
        assert_eq!(read(path, 5).unwrap(), b"12345");
        let error = read(path, 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "5 bytes is more than the limit of 4 bytes");
    }

    #[cfg(unix)]
    #[test]
    fn an_endless_argument_is_read_up_to_the_limit() {
        let error = read_argument(Utf8Path::new("/dev/zero"), 1000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
