//! The fixtures, and scripts that the tests write.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_conformance::{ConformanceRun, Subject, SubjectKind, VectorResult, Vectors};
use counterproof_store::write::{Durability, write};
use tempfile::TempDir;

pub(crate) fn fixture(name: &str) -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub(crate) fn vectors() -> Vectors {
    Vectors::read(&fixture("vectors.json")).unwrap()
}

pub(crate) fn tool() -> Subject {
    Subject::new(SubjectKind::Tool, &fixture("tool.sh")).unwrap()
}

/// A temporary folder for scripts.
pub(crate) struct Scripts(TempDir);

impl Scripts {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.0.path().join(name)).unwrap()
    }

    /// Writes an executable shell script and returns it as a subject.
    pub(crate) fn subject(&self, kind: SubjectKind, script: &str) -> Subject {
        let path = self.path("script");
        write(&path, format!("#!/bin/sh\n# Contract: M0-v0.1.0\n{script}\n").as_bytes(), Durability::Cached).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Subject::new(kind, &path).unwrap()
    }
}

/// Runs vectors with the golden outputs of the fixtures.
pub(crate) fn run(vectors: &Vectors, subjects: &[Subject]) -> Vec<VectorResult> {
    ConformanceRun::new(vectors, &fixture("expected"), subjects).run().unwrap()
}

/// Returns each problem with the id of its vector.
pub(crate) fn problems(results: &[VectorResult]) -> Vec<String> {
    let of_result = |result: &VectorResult| {
        result.problems().iter().map(|problem| format!("{}: {problem}", result.id)).collect::<Vec<_>>()
    };
    results.iter().flat_map(of_result).collect()
}
