//! The declared artifacts of a contract: each exists in the working directory, and its digest is recorded.

use std::io;

use camino::Utf8Path;
use counterproof_artifact::{Href, Sha256Digest};
use counterproof_store::confined_path::{self, ResolveError};
use serde::{Deserialize, Serialize};

/// Maximum size of an artifact.
pub const MAX_ARTIFACT_BYTES: u64 = 16 << 30;

/// Characters that would make a path a pattern. Brackets and braces occur in file names.
const PATTERN: [char; 2] = ['*', '?'];

/// An artifact and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactCheck {
    /// The path, as the contract has it.
    pub path: String,
    /// The file, or the problem with it.
    #[serde(flatten)]
    pub found: FoundArtifact,
}

/// What was found at the path of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum FoundArtifact {
    /// A file.
    Found {
        sha256: Sha256Digest,
        /// Its size.
        bytes: u64,
    },
    Problem {
        code: ArtifactProblem,
        /// The details.
        message: String,
    },
}

/// The kinds of problems with an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactProblem {
    /// The path is not a relative path of one file.
    InvalidPath,
    /// The file does not exist.
    Missing,
    /// The path leaves the working directory through a symbolic link.
    LeavesFolder,
    /// The path names a folder, a pipe or a device.
    NotAFile,
    /// The file is larger than the limit.
    TooLarge,
    /// The file cannot be read.
    Unreadable,
}

impl ArtifactCheck {
    /// True if the file exists.
    pub const fn is_found(&self) -> bool {
        matches!(self.found, FoundArtifact::Found { .. })
    }

    /// Returns the problem with a path that needs no file system: it is absolute, leaves the working directory, or is a pattern.
    pub fn path_problem(path: &str) -> Option<String> {
        if path.contains(PATTERN) {
            return Some(format!("`{}` is a pattern; name each file", path.escape_debug()));
        }
        path.parse::<Href>().err().map(|error| error.to_string())
    }
}

/// Looks for the artifacts of a contract in the working directory, and computes their digests.
pub fn check_artifacts(folder: &Utf8Path, paths: &[String]) -> Vec<ArtifactCheck> {
    let check = |path: &String| {
        let found = read(folder, path).map_or_else(
            |(code, message)| FoundArtifact::Problem { code, message },
            |(sha256, bytes)| FoundArtifact::Found { sha256, bytes },
        );
        ArtifactCheck { path: path.clone(), found }
    };
    paths.iter().map(check).collect()
}

fn read(folder: &Utf8Path, path: &str) -> Result<(Sha256Digest, u64), (ArtifactProblem, String)> {
    if let Some(problem) = ArtifactCheck::path_problem(path) {
        return Err((ArtifactProblem::InvalidPath, problem));
    }
    let unreadable = |error: io::Error| (ArtifactProblem::Unreadable, format!("`{path}` cannot be read: {error}"));
    let (file, length) = confined_path::open_with_length(folder, path).map_err(|error| match error {
        ResolveError::Missing { .. } => (ArtifactProblem::Missing, format!("`{path}` does not exist")),
        ResolveError::Escapes { .. } => (ArtifactProblem::LeavesFolder, error.to_string()),
        ResolveError::NotAFile { .. } => (ArtifactProblem::NotAFile, error.to_string()),
        ResolveError::Io { source, .. } => unreadable(source),
    })?;
    if length > MAX_ARTIFACT_BYTES {
        let message = format!("`{path}` has {length} bytes; at most {MAX_ARTIFACT_BYTES} are allowed");
        return Err((ArtifactProblem::TooLarge, message));
    }
    // A file that grows while it is read ends at its first length.
    Sha256Digest::from_reader(io::Read::take(file, length)).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use counterproof_store::write::{Durability, write};

    use super::*;

    #[test]
    fn artifacts_are_files_within_the_folder() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap();
        let folder = root.join("work");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        write(&folder.join("sub/[id].txt"), b"content", Durability::Cached).unwrap();
        write(&root.join("secret"), b"s", Durability::Cached).unwrap();
        symlink("sub/[id].txt", folder.join("link")).unwrap();
        symlink("../secret", folder.join("out")).unwrap();
        symlink("..", folder.join("up")).unwrap();
        let check = |path: &str| check_artifacts(&folder, &[path.to_owned()]).remove(0).found;
        for path in ["sub/[id].txt", "link"] {
            let expected = FoundArtifact::Found { sha256: Sha256Digest::from_bytes(b"content"), bytes: 7 };
            assert_eq!(check(path), expected, "{path}");
        }
        for (path, expected) in [
            ("none", ArtifactProblem::Missing),
            ("sub/none/x", ArtifactProblem::Missing),
            ("sub", ArtifactProblem::NotAFile),
            ("out", ArtifactProblem::LeavesFolder),
            ("up/secret", ArtifactProblem::LeavesFolder),
            ("../secret", ArtifactProblem::InvalidPath),
            ("/etc/hostname", ArtifactProblem::InvalidPath),
            ("sub/*.txt", ArtifactProblem::InvalidPath),
            ("", ArtifactProblem::InvalidPath),
        ] {
            match check(path) {
                FoundArtifact::Problem { code, message } => assert_eq!(code, expected, "{path}: {message}"),
                found @ FoundArtifact::Found { .. } => panic!("{path}: {found:?}"),
            }
        }
    }
}
