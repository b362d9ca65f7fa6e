//! What a sandbox hides: temporary folders, devices, and secrets of the home folder.

use std::fs;
use std::path::{Path, PathBuf};

/// Hidden in each system. Devices that commands need are visible one by one.
const SYSTEM: [&str; 8] =
    ["/dev", "/tmp", "/var/tmp", "/run/secrets", "/run/user", "/etc/shadow", "/etc/gshadow", "/etc/sudoers.d"];

/// Hidden in the home folder.
const HOME: [&str; 38] = [
    ".aws",
    ".azure",
    ".boto",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".claude.json",
    ".codex",
    ".composer/auth.json",
    ".config",
    ".cursor",
    ".docker",
    ".env",
    ".gem/credentials",
    ".gemini",
    ".git-credentials",
    ".gnupg",
    ".gradle/gradle.properties",
    ".kube",
    ".lesshst",
    ".local/share/keyrings",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".mozilla",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".oci",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".ssh",
    ".terraform.d",
    ".terraformrc",
    ".thunderbird",
    ".vault-token",
    ".viminfo",
];

/// Visible within a hidden folder of the home folder: git ends with an error if it cannot read its own settings.
const VISIBLE: [&str; 3] = [".config/git/config", ".config/git/ignore", ".config/git/attributes"];

/// Paths without symbolic links, which exist.
#[derive(Debug, Default)]
pub(super) struct HiddenPaths {
    pub(super) hidden: Vec<PathBuf>,
    /// Paths below hidden ones that are visible.
    pub(super) visible: Vec<PathBuf>,
}

impl HiddenPaths {
    pub(super) fn of_system(home: Option<&Path>) -> Self {
        let mut hidden: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        let mut visible = Vec::new();
        // A home of `/`, as some containers have it, hides the same names there.
        if let Some(home) = home.and_then(|home| home.canonicalize().ok()) {
            hidden.extend(HOME.iter().map(|name| home.join(name)));
            hidden.extend(histories(&home));
            visible.extend(VISIBLE.iter().map(|name| home.join(name)));
        }
        let existing = |paths: Vec<PathBuf>| paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
        Self { hidden: existing(hidden), visible: existing(visible) }
    }

    /// Calls `visit` with files and folders that together are everything below `/` that is not hidden. Symbolic links are
    /// left out: their targets are visible or hidden in their own right.
    pub(super) fn visit_visible(&self, visit: &mut impl FnMut(&Path)) {
        let mut pending = vec![PathBuf::from("/")];
        while let Some(path) = pending.pop() {
            if self.hidden.contains(&path) {
                continue;
            }
            if !self.hidden.iter().any(|hidden| hidden.starts_with(&path)) {
                visit(&path);
                continue;
            }
            let Ok(entries) = fs::read_dir(&path) else { continue };
            let is_link = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
            pending.extend(entries.flatten().filter(|entry| !is_link(entry)).map(|entry| entry.path()));
        }
        self.visible.iter().for_each(|path| visit(path));
    }
}

/// The histories of shells and of other programs, which contain what people typed.
fn histories(home: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(home) else { return Vec::new() };
    let is_history = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().ends_with("_history");
    entries.flatten().filter(is_history).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_not_hidden_is_visited() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in [
            "home/.ssh/id",
            "home/.config/git/config",
            "home/.config/gh/hosts.yml",
            "home/.bash_history",
            "home/code/a",
        ] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            let path = camino::Utf8PathBuf::from_path_buf(root.join(name)).unwrap();
            counterproof_store::write::write(&path, b"x", counterproof_store::write::Durability::Cached).unwrap();
        }
        std::os::unix::fs::symlink(".ssh", root.join("home/link")).unwrap();
        let mut paths = HiddenPaths::of_system(Some(&root.join("home")));
        // The folder of this test is a temporary one.
        let is_above = |path: &PathBuf| !root.starts_with(path);
        paths.hidden.retain(is_above);
        let mut visited = Vec::new();
        paths.visit_visible(&mut |path| visited.push(path.to_owned()));
        let is_visible = |name: &str| visited.iter().any(|path| root.join(name).starts_with(path));
        assert!(is_visible("home/code/a") && is_visible("home/.config/git/config"));
        for name in ["home/.ssh", "home/.ssh/id", "home/.config/gh", "home/.bash_history", "home/link", "home"] {
            assert!(!is_visible(name), "{name}");
        }
        let is_system = |name: &str| visited.iter().any(|path| Path::new(name).starts_with(path));
        assert!(is_system("/usr/bin") && is_system("/proc") && !is_system("/dev/null") && !is_system("/etc/shadow"));
    }
}
