//! The named pipe by which a shim ends the run that it belongs to.
//!
//! It is in a private folder, so only processes of the same user can write to it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_ledger::event::Termination;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use tempfile::TempDir;

/// The name of the pipe in its folder.
const NAME: &str = "termination";

/// Largest code and message in characters. A line must be written at once, which pipes guarantee for 4 KiB.
const MAX_CHARS: usize = 400;

/// The pipe of a run. Dropping it removes its folder.
#[derive(Debug)]
pub struct TerminationPipe {
    _folder: TempDir,
    path: Utf8PathBuf,
}

impl TerminationPipe {
    /// Creates a pipe in a new private folder.
    pub fn create() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("counterproof-run-").tempdir()?;
        let path = Utf8PathBuf::from_path_buf(folder.path().join(NAME)).map_err(|_| io::ErrorKind::InvalidFilename)?;
        rustix::fs::mknodat(CWD, path.as_std_path(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        Ok(Self { _folder: folder, path })
    }

    /// The path of the pipe.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Opens the reading end.
    pub(super) fn open(&self) -> io::Result<TerminationReader> {
        // Also opened for writing, so reading does not end when a shim closes the pipe.
        let file = rustix::fs::open(self.path.as_std_path(), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        Ok(TerminationReader(BufReader::new(File::from(file))))
    }
}

/// The reading end of a pipe.
#[derive(Debug)]
pub(super) struct TerminationReader(BufReader<File>);

impl TerminationReader {
    /// Waits for the next request. Other lines are ignored.
    pub(super) fn next(&mut self) -> io::Result<Termination> {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line)?;
            if let Ok(termination) = serde_json::from_str(&line) {
                return Ok(termination);
            }
        }
    }
}

/// Ends the run whose pipe this is. Fails if the run has ended.
pub fn request_termination(path: &Utf8Path, termination: &Termination) -> io::Result<()> {
    // Does not wait for a reader: a run that has ended has none.
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut file = File::from(rustix::fs::open(path.as_std_path(), flags, Mode::empty())?);
    if !std::os::unix::fs::FileTypeExt::is_fifo(&file.metadata()?.file_type()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a named pipe"));
    }
    let short = |text: &str| text.chars().take(MAX_CHARS).collect::<String>();
    let termination = Termination {
        terminate_code: short(&termination.terminate_code),
        terminate_message: short(&termination.terminate_message),
    };
    let mut line = serde_json::to_vec(&termination)?;
    line.push(b'\n');
    file.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn termination(message: &str) -> Termination {
        Termination { terminate_code: "LOOP".to_owned(), terminate_message: message.to_owned() }
    }

    #[test]
    fn a_request_arrives_and_other_lines_are_ignored() {
        let pipe = TerminationPipe::create().unwrap();
        let mut reader = pipe.open().unwrap();
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        let mut other = File::from(rustix::fs::open(pipe.path().as_std_path(), flags, Mode::empty()).unwrap());
        other.write_all(b"\n{}\nnot json\n").unwrap();
        request_termination(pipe.path(), &termination("a \"quoted\" \n text")).unwrap();
        assert_eq!(reader.next().unwrap(), termination("a \"quoted\" \n text"));
        request_termination(pipe.path(), &termination(&"\u{1}".repeat(10_000))).unwrap();
        assert_eq!(reader.next().unwrap().terminate_message.chars().count(), MAX_CHARS);
    }

    #[test]
    fn a_run_that_has_ended_is_an_error_at_once() {
        let pipe = TerminationPipe::create().unwrap();
        let path = pipe.path().to_owned();
        assert!(request_termination(&path, &termination("x")).is_err(), "the pipe has no reader");
        drop(pipe);
        assert!(request_termination(&path, &termination("x")).is_err());
        assert!(!path.parent().unwrap().exists());
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = Utf8Path::from_path(file.path()).unwrap();
        assert!(request_termination(path, &termination("x")).is_err(), "a regular file is not written");
        assert_eq!(file.path().metadata().unwrap().len(), 0);
    }
}
