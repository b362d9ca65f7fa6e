//! A workspace in a temporary folder, and the tools in it.

use std::fs;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_safe_run::Cancellation;
use counterproof_workflow::tools::{Sandbox, SandboxChoice, ToolOptions, ToolOutcome, Tools};
use serde_json::Value;
use tempfile::TempDir;

/// A folder with `workspace`, `private` and `outside`.
pub(crate) struct Kit {
    folder: TempDir,
}

impl Kit {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["workspace", "private", "outside"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().canonicalize_utf8().unwrap().join(name)
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path("workspace").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path("workspace").join(name)).unwrap()
    }

    pub(crate) fn options(&self, sandbox: Sandbox) -> ToolOptions {
        let options = ToolOptions::new(self.path("workspace"), self.path("private"), sandbox);
        ToolOptions { supervisor: Some(supervisor()), ..options }
    }

    pub(crate) fn tools(&self) -> Tools {
        Tools::new(self.options(Sandbox::None))
    }

    pub(crate) fn run(&self, name: &str, arguments: &Value) -> ToolOutcome {
        self.tools().run(name, &arguments.to_string(), &Cancellation::default())
    }
}

/// Returns the example `workflow_supervisor`, which `cargo test` builds.
pub(crate) fn supervisor() -> std::path::PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples").join("workflow_supervisor")
}

/// Returns the sandboxes of this system, and none.
pub(crate) fn sandboxes() -> Vec<Sandbox> {
    let all = [Sandbox::None, Sandbox::Landlock, Sandbox::Bwrap];
    all.into_iter().filter(|sandbox| Sandbox::detect(SandboxChoice::Only(*sandbox)).is_ok()).collect()
}

/// Returns the restricting sandboxes of this system.
pub(crate) fn restricting() -> Vec<Sandbox> {
    sandboxes().into_iter().filter(|sandbox| *sandbox != Sandbox::None).collect()
}
