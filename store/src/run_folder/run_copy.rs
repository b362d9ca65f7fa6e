//! A run folder that is also copied to another place while it is written, such as a bucket.

use std::fmt::Debug;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// The place that a run is copied to. All paths are those of the folder on this machine.
///
/// A file is put there once it is durable here, and its write is done when it is there. So the order of the writes is the same in
/// both: the assets of a case before its artifact, and the end of the run last.
pub trait RunCopy: Send + Sync + Debug {
    /// Copies files, in any order, and replaces earlier copies.
    fn put(&self, files: &[Utf8PathBuf]) -> io::Result<()>;

    /// Removes the copy of a file, if there is one.
    fn remove(&self, file: &Utf8Path) -> io::Result<()>;

    /// Takes the name of a run folder. Of several processes, one gets it; the others get false.
    fn claim(&self, folder: &Utf8Path) -> io::Result<bool>;

    /// Whether a process has taken the name of a run folder.
    fn is_claimed(&self, folder: &Utf8Path) -> io::Result<bool>;

    /// The names of the run folders in a folder.
    fn run_folders(&self, parent: &Utf8Path) -> io::Result<Vec<String>>;

    /// Copies one file from there to this machine, in place of what is here. Returns false if it is not there.
    fn fetch_document(&self, file: &Utf8Path) -> io::Result<bool>;

    /// Copies a run folder from there to this machine, in place of what is here.
    fn fetch(&self, folder: &Utf8Path) -> io::Result<()>;
}
