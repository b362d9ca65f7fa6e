//! The named pipe by which a shim, or a person, ends the run that it belongs to.
//!
//! It is in a private folder, so only processes of the same user can write to it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_ledger::event::Termination;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use tempfile::TempDir;

const NAME: &str = "termination";

/// Largest code and message in characters, of which JSON writes six bytes each at most. A request must be written at once, which
/// pipes guarantee for 4 KiB.
const MAX_CHARS: usize = 300;

/// Longest line that is read as a request, in bytes. Longer lines are ignored.
const MAX_LINE: usize = 4096;

/// Longest folder for temporary files in which a socket of a run still has a path that the system accepts: 107 bytes.
const MAX_FOLDER_BYTES: usize = 64;

const PAUSE: Duration = Duration::from_millis(20);

/// How long a request waits for space in a pipe that others have filled.
const WRITE_TIME: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct TerminationPipe {
    _folder: TempDir,
    path: Utf8PathBuf,
}

impl TerminationPipe {
    pub fn create() -> io::Result<Self> {
        let mut folder = std::env::temp_dir();
        if folder.as_os_str().len() > MAX_FOLDER_BYTES {
            folder = "/tmp".into();
        }
        let folder = tempfile::Builder::new().prefix("counterproof-run-").tempdir_in(folder)?;
        let path = Utf8PathBuf::from_path_buf(folder.path().join(NAME)).map_err(|_| io::ErrorKind::InvalidFilename)?;
        // Only the owner: another user must not end the run.
        rustix::fs::mknodat(CWD, path.as_std_path(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        Ok(Self { _folder: folder, path })
    }

    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The private folder of the run.
    pub(super) fn folder(&self) -> &Utf8Path {
        self.path.parent().unwrap_or(&self.path)
    }

    pub(super) fn open(&self) -> io::Result<TerminationReader> {
        // Also opened for writing, so reading does not end when a shim closes the pipe.
        let file = rustix::fs::open(self.path.as_std_path(), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        Ok(TerminationReader(BufReader::new(File::from(file))))
    }
}

#[derive(Debug)]
pub(super) struct TerminationReader(BufReader<File>);

impl TerminationReader {
    pub(super) fn next(&mut self) -> Termination {
        // Everything else that is in the pipe is ignored: any process of the agent can write to it.
        loop {
            match self.line() {
                Ok(line) if line.len() <= MAX_LINE => {
                    if let Ok(termination) = serde_json::from_slice(&line) {
                        return termination;
                    }
                }
                Ok(_) => {}
                // The reader must outlive any error: without it, no rule can end the run.
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    /// Reads a line without its end. Of a line that is too long, the rest is dropped.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        loop {
            let buffered = self.0.fill_buf()?;
            if buffered.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let end = buffered.iter().position(|byte| *byte == b'\n');
            let read = end.unwrap_or(buffered.len());
            // Any process of the agent can write to the pipe, so a line is bounded.
            let room = (MAX_LINE + 1).saturating_sub(line.len());
            line.extend_from_slice(&buffered[..read.min(room)]);
            self.0.consume(read + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(line);
            }
        }
    }
}

/// Ends the run whose pipe this is. Fails if the run has ended, or if the pipe stays full.
pub fn request_termination(path: &Utf8Path, termination: &Termination) -> io::Result<()> {
    let termination = Termination {
        terminate_code: short(&termination.terminate_code),
        terminate_message: short(&termination.terminate_message),
    };
    send(path, &termination)
}

fn short(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

fn send(path: &Utf8Path, termination: &Termination) -> io::Result<()> {
    // Does not wait for a reader: a run that has ended has none.
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut file = File::from(rustix::fs::open(path.as_std_path(), flags, Mode::empty())?);
    // The variable may name any file, which must not be written to.
    if !std::os::unix::fs::FileTypeExt::is_fifo(&file.metadata()?.file_type()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a named pipe"));
    }
    // Starts with a line end: another process may have left a line without one.
    let mut request = vec![b'\n'];
    serde_json::to_writer(&mut request, termination)?;
    request.push(b'\n');
    let started = Instant::now();
    loop {
        match file.write_all(&request) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && started.elapsed() < WRITE_TIME => {
                thread::sleep(PAUSE);
            }
            result => return result,
        }
    }
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
        assert_eq!(reader.next(), termination("a \"quoted\" \n text"));
        request_termination(pipe.path(), &termination(&"\u{1}".repeat(10_000))).unwrap();
        assert_eq!(reader.next().terminate_message.chars().count(), MAX_CHARS);
    }

    /// Writes bytes as a process of the agent does.
    fn write_other(pipe: &TerminationPipe, bytes: &[u8]) {
        let flags = OFlags::WRONLY;
        let mut other = File::from(rustix::fs::open(pipe.path().as_std_path(), flags, Mode::empty()).unwrap());
        other.write_all(bytes).unwrap();
    }

    #[test]
    fn a_request_arrives_after_any_bytes_of_others() {
        for others in [&b"x"[..], b"\xff\n", b"\xff", b"{\"terminate_code\":", b"\0"] {
            let pipe = TerminationPipe::create().unwrap();
            let mut reader = pipe.open().unwrap();
            write_other(&pipe, others);
            request_termination(pipe.path(), &termination("ended")).unwrap();
            assert_eq!(reader.next(), termination("ended"), "{others:?}");
        }
    }

    #[test]
    fn a_line_without_an_end_takes_no_memory_and_does_not_stop_a_request() {
        let pipe = TerminationPipe::create().unwrap();
        let mut reader = pipe.open().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..512).for_each(|_| write_other(&pipe, &[b' '; 8 * 1024]));
                write_other(&pipe, b"\n");
                request_termination(pipe.path(), &termination("ended")).unwrap();
            });
            let line = reader.line().unwrap();
            assert_eq!((line.len(), line.capacity() <= 4 * MAX_LINE), (MAX_LINE + 1, true));
            assert_eq!(reader.next(), termination("ended"));
        });
        // A truncated line is ignored, even if its first part is a valid request.
        let text = serde_json::to_vec(&termination("cut")).unwrap();
        write_other(&pipe, &[&text[..], &[b' '; MAX_LINE], b"x\n"].concat());
        request_termination(pipe.path(), &termination("whole")).unwrap();
        assert_eq!(reader.next(), termination("whole"));
    }

    #[test]
    fn a_request_waits_until_a_full_pipe_has_space() {
        let pipe = TerminationPipe::create().unwrap();
        let mut reader = pipe.open().unwrap();
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        let mut other = File::from(rustix::fs::open(pipe.path().as_std_path(), flags, Mode::empty()).unwrap());
        while other.write(&[b'x'; 4096]).is_ok() {}
        std::thread::scope(|scope| {
            let request = scope.spawn(|| request_termination(pipe.path(), &termination("ended")));
            std::thread::sleep(PAUSE);
            assert_eq!(reader.next(), termination("ended"));
            request.join().unwrap().unwrap();
        });
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
