//! Where the programs are: built once for all tests, in the profile in which the tests themselves were built.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The `counterproof` program, built if it has to be.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| folder().join(format!("counterproof{}", std::env::consts::EXE_SUFFIX)))
}

/// The `safe-run` program, built if it has to be.
pub fn safe_run() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| folder().join(format!("safe-run{}", std::env::consts::EXE_SUFFIX)))
}

/// The folder of both, once they have been built.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace");
        let mut build = Command::new(env!("CARGO"));
        // The whole workspace, so that the features of shared dependencies stay as they are and nothing is built twice.
        build
            .args(["build", "--quiet", "--workspace", "--bin", "counterproof", "--bin", "safe-run"])
            .current_dir(workspace);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo starts").success(), "the programs could not be built");
        // Tests lie in `<target>/<profile>/deps/`, programs in `<target>/<profile>/`.
        let test = std::env::current_exe().expect("a test knows its own path");
        let profile = test.parent().and_then(Path::parent).expect("tests lie in the target folder");
        profile.to_owned()
    })
}
