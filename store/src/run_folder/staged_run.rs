//! A run folder that appears complete or not at all.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{RunId, Side};

use super::{CreateError, RunWriter};
use crate::write::{self, StagedFolder};

/// A part of the temporary name.
const PURPOSE: &str = "export";

/// A run folder under construction, next to its final place. Dropping it before [`StagedRun::publish`] removes it.
#[derive(Debug)]
pub struct StagedRun {
    /// Declared before the folder: fields drop in order, and the folder is removed after its lock is released.
    writer: RunWriter,
    staged: StagedFolder,
    target: Utf8PathBuf,
}

impl StagedRun {
    /// Starts `<out>/<side>/<run_id>/`, which must not exist.
    pub fn create(out: &Utf8Path, side: Side, run_id: &RunId) -> Result<Self, CreateError> {
        let parent = out.join(side.as_str());
        let target = parent.join(run_id.as_str());
        // Checked again when the folder is published; this check avoids writing a run that cannot be used.
        if exists(&target) {
            return Err(CreateError::Exists(target));
        }
        write::create_folder(&parent)?;
        let (staged, writer) =
            StagedFolder::create_with(&target, PURPOSE, |path| RunWriter::create_at(path.to_owned(), side))?;
        Ok(Self { writer, staged, target })
    }

    /// The writer of the folder.
    pub const fn writer(&self) -> &RunWriter {
        &self.writer
    }

    /// Gives the folder its name, unless another process has taken it in the meantime. Returns the folder.
    pub fn publish(self) -> Result<Utf8PathBuf, CreateError> {
        let Self { writer, mut staged, target } = self;
        // Releases the lock before the folder is renamed.
        drop(writer);
        match staged.publish() {
            Ok(()) => Ok(target),
            // An error after the rename also leaves a folder with the final name. Only if the temporary folder still exists
            // does the final one belong to another process.
            Err(_) if exists(&target) && exists(staged.path()) => Err(CreateError::Exists(target)),
            Err(error) => Err(error.into()),
        }
    }
}

fn exists(folder: &Utf8Path) -> bool {
    fs::symlink_metadata(folder).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::Durability;

    #[test]
    fn a_run_folder_that_appeared_meanwhile_is_an_error_and_stays_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(directory.path()).unwrap();
        for name in ["theirs", "file"] {
            let folder = root.join("new").join(name);
            let staged = StagedRun::create(root, Side::New, &name.parse().unwrap()).unwrap();
            match name {
                "file" => write::write(&folder, b"other", Durability::Cached).unwrap(),
                _ => write::create_folder(&folder.join("assets")).unwrap(),
            }
            let published = staged.publish();
            assert!(matches!(&published, Err(CreateError::Exists(path)) if *path == folder), "{published:?}");
        }
        assert!(root.join("new/theirs/assets").is_dir() && root.join("new/file").is_file());
        let staged = StagedRun::create(root, Side::New, &"gone".parse().unwrap()).unwrap();
        fs::remove_dir_all(staged.writer().folder()).unwrap();
        let missing = staged.publish();
        assert!(matches!(missing, Err(CreateError::Write(_))), "{missing:?}");
    }
}
