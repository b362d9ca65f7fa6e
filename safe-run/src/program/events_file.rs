//! The file of events: opened before the command is started, so that it is known then whether it can be.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::write;

use crate::Record;

/// Where the events go.
#[derive(Debug)]
pub(super) struct Events {
    out: BufWriter<File>,
    /// Where the file is, if it was made here.
    made: Option<Utf8PathBuf>,
}

impl Events {
    /// Opens a new file, or what is no file and stands there already, such as a named pipe.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let is_special = path.metadata().is_ok_and(|there| {
            let kind = there.file_type();
            kind.is_fifo() || kind.is_char_device() || kind.is_socket()
        });
        let told = |error: &dyn Display| format!("failed to write the events to `{}`: {error}", path.display());
        if is_special {
            #[expect(clippy::disallowed_methods, reason = "a pipe or a device, and no file that could be torn")]
            let opened = OpenOptions::new().write(true).open(path);
            return match opened {
                Ok(file) => Ok(Self { out: BufWriter::new(file), made: None }),
                Err(error) => Err(told(&error)),
            };
        }
        let path = Utf8Path::from_path(path).ok_or_else(|| told(&"the path is no UTF-8 text"))?;
        let file = write::create_new(path).map_err(|error| match error.source.kind() {
            io::ErrorKind::AlreadyExists => told(&left_over(path)),
            _ => told(&error.source),
        })?;
        Ok(Self { out: BufWriter::new(file), made: Some(path.to_owned()) })
    }

    /// Writes all of them.
    pub(super) fn write(mut self, record: &Record) -> Result<(), String> {
        let written = record.write_json_lines(&mut self.out).and_then(|()| self.out.flush());
        let Err(error) = written else { return Ok(()) };
        let told = format!("failed to write the events: {error}");
        Err(match self.made {
            Some(path) => format!("{told}; `{path}` is no whole record: remove it before the next run"),
            None => told,
        })
    }

    /// Takes away what was made, for there are no events: the next call finds the name free. What cannot be taken away stays, and
    /// that call says so.
    pub(super) fn discard(self) {
        let Some(path) = self.made else { return };
        let ours = self.out.get_ref().metadata().map(|file| (file.dev(), file.ino()));
        let there = fs::symlink_metadata(&path).map(|file| (file.dev(), file.ino()));
        // Somebody else may have put another file there since.
        if matches!((ours, there), (Ok(ours), Ok(there)) if ours == there) {
            let _ = fs::remove_file(path);
        }
    }
}

/// What to do about a file that is there already.
fn left_over(path: &Utf8Path) -> &'static str {
    match path.symlink_metadata() {
        Ok(there) if there.is_file() && there.len() == 0 => {
            "the file is there already, and empty, as a safe-run leaves it that was killed or is still at work; remove it, or name another"
        }
        _ => "the file is there already, and is not overwritten; remove it, or name another",
    }
}
