//! bubblewrap: a command in namespaces of its own, where the kernel has no Landlock.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use super::command::SandboxedCommand;
use super::hidden_paths::HiddenPaths;

const PROGRAM: &str = "bwrap";

/// The root folder, read-only, with devices and processes of the sandbox alone.
const BASE: [&str; 12] = [
    "--die-with-parent",
    "--unshare-pid",
    "--unshare-ipc",
    // With the rights of root, a command could mount the root folder again.
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
];

pub(super) fn is_available() -> bool {
    // Installed is not enough: a system may forbid namespaces.
    let mut command = Command::new(PROGRAM);
    command.args(BASE).args(["--unshare-net", "--", "true"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the words before the command itself.
pub(super) fn words(command: &SandboxedCommand) -> Vec<OsString> {
    let home = std::env::var_os("HOME");
    words_hiding(command, &HiddenPaths::of_system(home.as_deref().map(Path::new)))
}

fn words_hiding(command: &SandboxedCommand, paths: &HiddenPaths) -> Vec<OsString> {
    let mut words: Vec<OsString> = [PROGRAM].into_iter().chain(BASE).map(OsString::from).collect();
    let mut add = |option: &str, paths: &[&Path]| {
        words.push(option.into());
        words.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    };
    if command.tcp_ports.is_empty() {
        add("--unshare-net", &[]);
    }
    // `/dev` is that of the sandbox already.
    for path in paths.hidden.iter().filter(|path| !path.starts_with("/dev")) {
        if path.is_dir() {
            add("--tmpfs", &[path]);
        } else {
            add("--ro-bind", &[Path::new("/dev/null"), path]);
        }
    }
    let readable = command.readable.iter().map(|path| path.as_std_path());
    for path in paths.visible.iter().map(|path| &**path).chain(readable) {
        add("--ro-bind-try", &[path, path]);
    }
    // Last, because they may be in a hidden folder.
    for path in [&command.workspace, &command.private] {
        add("--bind", &[path.as_std_path(), path.as_std_path()]);
    }
    add("--chdir", &[command.workspace.as_std_path()]);
    add("--", &[]);
    words
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use counterproof_safe_run::Input;

    use super::*;

    fn words(tcp_ports: Vec<u16>) -> String {
        let command = SandboxedCommand {
            line: "true".to_owned(),
            workspace: "/w".into(),
            private: "/p".into(),
            readable: vec!["/r".into()],
            environment: [].into(),
            input: Input::Inherited,
            tcp_ports,
            timeout: None,
            output_limit: None,
            grace: Duration::ZERO,
            supervisor: None,
        };
        let hidden = ["/dev", "/tmp", "/etc/passwd"].map(Into::into).to_vec();
        let words = words_hiding(&command, &HiddenPaths { hidden, visible: vec!["/v".into()] });
        words.join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn what_is_hidden_comes_before_what_is_visible() {
        let base = "bwrap --die-with-parent --unshare-pid --unshare-ipc --cap-drop ALL --ro-bind / / --dev /dev \
                    --proc /proc";
        let rest = "--tmpfs /tmp --ro-bind /dev/null /etc/passwd --ro-bind-try /v /v --ro-bind-try /r /r --bind /w /w \
                    --bind /p /p --chdir /w --";
        assert_eq!(words(Vec::new()), format!("{base} --unshare-net {rest}"));
        assert_eq!(words(vec![80]), format!("{base} {rest}"));
    }
}
