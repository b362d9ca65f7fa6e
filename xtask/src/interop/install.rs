//! Packages of Python and npm, installed once into a folder that clones share.
//!
//! If a program, a package or its registry is missing, one line says so, and what needs the package is skipped.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

pub(crate) use crate::folders::{create, write};
use crate::step::{Failure, progress, root};

/// A slower installation is skipped, so that CI ends in time.
const INSTALL_WITHIN: Duration = Duration::from_mins(8);
const CREATE_WITHIN: Duration = Duration::from_mins(3);

/// Returns the folder of a set of packages. It lies in the cache of the user, so that a new clone does not download them again.
pub(crate) fn cached(name: &str) -> Utf8PathBuf {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty()).map(Utf8PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    cache.map_or_else(|| root().join("target"), |cache| cache.join("counterproof")).join("interop").join(name)
}

/// Names the installed packages. Written at the end of an installation.
const MARKER: &str = "installed.txt";

/// Installs packages of Python into an environment of its own, and returns the folder of its programs. Returns `None` if the
/// machine cannot install them.
pub(crate) fn python(folder: &Utf8Path, packages: &[&str]) -> Result<Option<Utf8PathBuf>, Failure> {
    let programs = folder.join("bin");
    if is_installed(folder, packages) {
        return Ok(Some(programs));
    }
    create(folder)?;
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv", folder.as_str()]);
    if !succeeds(environment, CREATE_WITHIN) {
        skip("python3 with its module venv is not installed");
        return Ok(None);
    }
    let mut pip = Command::new(programs.join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
    pip.args(["--retries", "1", "--timeout", "20"]).args(packages);
    Ok(install(folder, packages, pip, "pip")?.then_some(programs))
}

/// Installs packages of npm, and returns the folder `node_modules`. Returns `None` if the machine cannot install them.
pub(crate) fn npm(folder: &Utf8Path, packages: &[&str]) -> Result<Option<Utf8PathBuf>, Failure> {
    let modules = folder.join("node_modules");
    if is_installed(folder, packages) {
        return Ok(Some(modules));
    }
    create(folder)?;
    let mut npm = Command::new("npm");
    // Without scripts: no package runs code while it is installed.
    npm.args(["install", "--prefix", folder.as_str(), "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"]);
    npm.args(["--loglevel", "error"]).args(packages);
    Ok(install(folder, packages, npm, "npm")?.then_some(modules))
}

fn is_installed(folder: &Utf8Path, packages: &[&str]) -> bool {
    // The packages have versions, so an update installs them again.
    std::fs::read_to_string(folder.join(MARKER)).is_ok_and(|installed| installed == packages.join(" "))
}

/// Runs an installation, and returns whether it succeeds.
fn install(folder: &Utf8Path, packages: &[&str], command: Command, installer: &str) -> Result<bool, Failure> {
    let package = packages.join(" ");
    progress(&format!("==> {installer} install {package} into {folder}"));
    let start = Instant::now();
    if !succeeds(command, INSTALL_WITHIN) {
        let within = INSTALL_WITHIN.as_secs() / 60;
        skip(&format!(
            "{installer} could not install {package} within {within} minutes: is the package registry reachable?"
        ));
        return Ok(false);
    }
    progress(&format!("    installed in {:.1} s", start.elapsed().as_secs_f64()));
    // Last, so that an interrupted installation is done again.
    write(&folder.join(MARKER), package)?;
    Ok(true)
}

pub(crate) fn skip(why: &str) {
    progress(&format!("==> skipped: a part of cargo xtask interop ({why})"));
}

/// Runs a command without input. Returns false if it cannot be started, fails, or exceeds the time limit and is killed.
pub(super) fn succeeds(mut command: Command, within: Duration) -> bool {
    let Ok(mut child) = command.stdin(Stdio::null()).spawn() else { return false };
    let end = Instant::now() + within;
    // `wait` of the standard library has no time limit.
    while Instant::now() < end {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => thread::sleep(Duration::from_millis(50)),
            Err(_) => break,
        }
    }
    stop(&mut child);
    false
}

pub(super) fn stop(child: &mut Child) {
    // Fails if the program has already ended, which needs no action.
    let _ = child.kill();
    let _ = child.wait();
}
