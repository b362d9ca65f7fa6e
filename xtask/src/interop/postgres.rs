//! The ledger against a PostgreSQL server, which the tests start in temporary folders.

use std::process::Command;
use std::time::Duration;

use camino::Utf8PathBuf;

use super::install;
use super::process::succeeds;
use crate::step::{Failure, Step, progress};

/// The package of Debian 12. Installing it starts no server there if the system has no service manager.
const PACKAGE: &str = "postgresql-15";

/// Where Debian installs the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

const INSTALL_WITHIN: Duration = Duration::from_mins(5);

/// Runs the tests of the ledger that need a server.
pub(super) fn run() -> Result<(), Failure> {
    let Some(programs) = programs() else {
        install::skip(&format!("initdb is missing, and apt could not install {PACKAGE}"));
        return Ok(());
    };
    progress(&format!("    PostgreSQL in {programs}"));
    let tests =
        ["test", "--package", "counterproof-ledger", "--locked", "--test", "it", "postgres::", "--", "--ignored"];
    Step::cargo(tests).env("COUNTERPROOF_POSTGRES_BIN", programs.as_str()).run()
}

/// Returns the folder of the programs, and installs them if necessary. Returns `None` if the machine cannot install them.
fn programs() -> Option<Utf8PathBuf> {
    if let Some(programs) = newest() {
        return Some(programs);
    }
    let install = || {
        progress(&format!("==> apt-get install {PACKAGE}"));
        let mut apt = Command::new("apt-get");
        apt.args(["install", "--yes", "--quiet", "--no-install-recommends", PACKAGE]);
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        succeeds(apt, INSTALL_WITHIN)
    };
    let update = || {
        let mut apt = Command::new("apt-get");
        apt.args(["update", "--quiet"]);
        succeeds(apt, INSTALL_WITHIN)
    };
    // A fresh system has no lists of packages.
    let is_installed = install() || (update() && install());
    is_installed.then(newest).flatten()
}

/// Returns the folder of the newest version that is installed.
fn newest() -> Option<Utf8PathBuf> {
    let versions = Utf8PathBuf::from(VERSIONS).read_dir_utf8().ok()?;
    let version = |path: &Utf8PathBuf| path.file_name().and_then(|name| name.parse::<u32>().ok());
    let folders = versions.filter_map(|entry| Some(entry.ok()?.into_path()));
    let newest = folders.filter(|path| path.join("bin/initdb").is_file()).max_by_key(version)?;
    Some(newest.join("bin"))
}
