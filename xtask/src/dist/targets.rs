//! The targets that this machine can build: static programs for Linux with zig as the linker, and programs for this machine.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use super::Options;
use crate::folders;
use crate::interop::install;
use crate::programs;
use crate::step::{Failure, Step, progress, root};
use crate::test_runs::{add_target, is_installed};

/// Static programs run on every Linux.
const STATIC: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// Programs for this machine run on every Linux with this version of glibc or a newer one, if zig links them.
const GLIBC: &str = "2.17";

/// The linker for other systems, and what calls it.
const PACKAGES: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.0"];

/// What the programs need of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Linking {
    /// No C library.
    Static,
    /// An old glibc or a newer one.
    OldGlibc,
    /// The C library of this machine.
    ThisMachine,
}

/// The programs of a target.
#[derive(Debug)]
pub(super) struct Build {
    /// Whether the packages of the programs are compressed.
    pub(super) compressed: bool,
    pub(super) target: String,
    pub(super) linking: Linking,
    pub(super) counterproof: Utf8PathBuf,
    pub(super) safe_run: Utf8PathBuf,
}

impl Build {
    /// Returns whether this machine runs the programs.
    pub(super) fn runs_here(&self) -> bool {
        self.target.starts_with(std::env::consts::ARCH) && self.target.contains(std::env::consts::OS)
    }

    pub(super) fn programs(&self) -> [(&'static str, &Utf8Path); 2] {
        [("counterproof", &self.counterproof), ("safe-run", &self.safe_run)]
    }
}

/// Builds the programs.
pub(super) struct Builder {
    options: Options,
    /// The triple of this machine.
    host: String,
    /// The folder of zig; `None` if it is not needed or cannot be installed.
    zig: Option<Utf8PathBuf>,
}

impl Builder {
    pub(super) fn prepare(options: Options) -> Result<Self, Failure> {
        let version = folders::output("rustc".into(), &["-vV"])?;
        let version = String::from_utf8_lossy(&version).into_owned();
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned();
        let needs_zig = !(options.debug && options.host);
        let zig = if needs_zig { install::python(&install::cached("packaging"), &PACKAGES)? } else { None };
        Ok(Self { options, host, zig })
    }

    const fn profile(&self) -> &'static str {
        if self.options.debug { "dev" } else { "dist" }
    }

    pub(super) fn build_all(&self) -> Result<Vec<Build>, Failure> {
        let mut builds = Vec::new();
        if !self.options.host {
            for target in STATIC {
                builds.extend(self.build_static(target)?);
            }
        }
        if !builds.iter().any(Build::runs_here) {
            builds.push(self.build_for_this_machine()?);
        }
        Ok(builds)
    }

    fn build_static(&self, target: &str) -> Result<Option<Build>, Failure> {
        let skip = |why: &str| progress(&format!("==> skipped: {target} ({why})"));
        if self.zig.is_none() {
            skip("zig could not be installed");
            return Ok(None);
        }
        if !is_installed(target) && !add_target(target) {
            skip("the toolchain does not have it, and rustup cannot add it");
            return Ok(None);
        }
        if self.zigbuild(target).run().is_err() {
            skip("it does not build");
            return Ok(None);
        }
        self.programs(target, target, Linking::Static).map(Some)
    }

    /// With zig, the programs need no newer glibc than an old one.
    fn build_for_this_machine(&self) -> Result<Build, Failure> {
        let is_gnu = self.host.ends_with("-linux-gnu");
        if !self.options.debug && is_gnu && self.zig.is_some() {
            self.zigbuild(&format!("{}.{GLIBC}", self.host)).run()?;
            return self.programs(&self.host, &self.host, Linking::OldGlibc);
        }
        if !self.options.debug && is_gnu {
            progress("==> skipped: programs for older versions of glibc (zig could not be installed)");
        }
        if self.options.debug {
            // The build of the tests, which CI has made already.
            programs::build()?;
        } else {
            Step::cargo(["build", "--locked", "--profile", "dist", "--bins"])
                .with(&["--package", "counterproof", "--package", "counterproof-safe-run"].map(str::to_owned))
                .run()?;
        }
        self.programs(&self.host, "", Linking::ThisMachine)
    }

    fn zigbuild(&self, target: &str) -> Step {
        let folder = self.zig.clone().unwrap_or_default();
        let mut command = Command::new(folder.join("cargo-zigbuild"));
        let arguments = ["zigbuild", "--locked", "--profile", self.profile(), "--target", target];
        command.args(arguments).args(["--package", "counterproof", "--package", "counterproof-safe-run", "--bins"]);
        command.env("PATH", path_with(&folder));
        Step::new(format!("cargo {}", arguments.join(" ")), command)
    }

    /// Copies the programs of a target out of the folder of cargo, stripped.
    fn programs(&self, target: &str, folder: &str, linking: Linking) -> Result<Build, Failure> {
        let built = target_folder().join(folder).join(if self.options.debug { "debug" } else { "dist" });
        let stripped = target_folder().join("dist").join(target);
        for name in ["counterproof", "safe-run"] {
            folders::copy(&built.join(name), &stripped.join(name))?;
            if self.options.debug {
                strip(&stripped.join(name));
            }
        }
        let [counterproof, safe_run] = ["counterproof", "safe-run"].map(|name| stripped.join(name));
        Ok(Build { compressed: !self.options.debug, target: target.to_owned(), linking, counterproof, safe_run })
    }
}

/// Cargo strips the programs of the profile of release.
fn strip(program: &Utf8Path) {
    let mut strip = Command::new("strip");
    strip.arg(program).stdin(Stdio::null()).stderr(Stdio::null());
    if !strip.status().is_ok_and(|status| status.success()) {
        progress(&format!("==> skipped: strip {program} (it is not installed, or for other targets)"));
    }
}

fn target_folder() -> Utf8PathBuf {
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| "target".into(), Utf8PathBuf::from);
    root().join(target)
}

/// The search path with a folder at its start.
fn path_with(folder: &Utf8Path) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [folder.as_std_path().to_owned()].into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap_or(path)
}
