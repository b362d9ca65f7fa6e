//! Writes files of a folder that is not published yet: one system call less for each step that makes a single file atomic.
//!
//! Such a folder appears as a whole ([`FolderReplacement`](super::FolderReplacement)), so its files need no temporary names.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Write};

use camino::Utf8Path;

use crate::read_file;

use super::WriteError;

thread_local! {
    /// The buffer of a thread. A new one for each file would be cleared each time, which costs more than most copies.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; 64 * 1024].into_boxed_slice());
}

/// Writes `bytes` to `path`, which must not exist yet.
pub fn write_new(path: &Utf8Path, bytes: &[u8]) -> Result<(), WriteError> {
    create(path).and_then(|mut file| file.write_all(bytes)).map_err(WriteError::at(path))
}

/// Copies the file `from` to `to`. Returns false where `to` exists already, and leaves it unchanged.
///
/// An error has the path of the side that failed. After an error of the source, `to` holds a part of it.
pub fn copy_new(from: &Utf8Path, to: &Utf8Path) -> Result<bool, WriteError> {
    let (mut source, _) = read_file::open(from).map_err(WriteError::at(from))?;
    let mut target = match create(to) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(WriteError::at(to)(error)),
    };
    // Not `io::copy`, which does not say whether reading or writing failed.
    BUFFER.with_borrow_mut(|buffer| {
        loop {
            match source.read(buffer).map_err(WriteError::at(from))? {
                0 => return Ok(true),
                read => target.write_all(&buffer[..read]).map_err(WriteError::at(to))?,
            }
        }
    })
}

fn create(path: &Utf8Path) -> io::Result<File> {
    #[expect(clippy::disallowed_methods, reason = "the folder is not published yet, so no reader sees a torn file")]
    File::create_new(path)
}
