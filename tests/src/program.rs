//! Paths of the programs, which are built once for all tests, in the profile of the tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns the path of the `counterproof` program, and builds it if necessary.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| folder().join(format!("counterproof{}", std::env::consts::EXE_SUFFIX)))
}

/// Returns the path of the `safe-run` program, and builds it if necessary.
pub fn safe_run() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| folder().join(format!("safe-run{}", std::env::consts::EXE_SUFFIX)))
}

/// Returns the path of the `coding-test-agent` program, and builds it if necessary.
pub fn coding_agent() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| folder().join(format!("coding-test-agent{}", std::env::consts::EXE_SUFFIX)))
}

/// Returns the folder of the programs after they are built.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace");
        let mut build = Command::new(env!("CARGO"));
        // The whole workspace: other features of shared dependencies would build them twice.
        build.args([
            "build",
            "--quiet",
            "--workspace",
            "--exclude",
            "xtask",
            "--bin",
            "counterproof",
            "--bin",
            "safe-run",
            "--bin",
            "coding-test-agent",
        ]);
        build.current_dir(workspace);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo starts").success(), "the programs could not be built");
        // Tests are in `<target>/<profile>/deps/`, programs in `<target>/<profile>/`.
        let test = std::env::current_exe().expect("a test knows its own path");
        let profile = test.parent().and_then(Path::parent).expect("tests lie in the target folder");
        profile.to_owned()
    })
}
