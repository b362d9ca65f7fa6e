//! `cargo xtask dist`: what is published, in `dist/`: archives of both programs, a wheel, packages of npm, an SBOM and checksums.
//!
//! What this machine cannot build is skipped, with one line that states why.

mod archive;
mod install_test;
mod npm;
mod sbom;
mod targets;
mod wheel;

use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest as _, Sha256};

use crate::folders;
use crate::step::{Failure, progress, root};
use targets::{Build, Builder};

/// Options of `cargo xtask dist`.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct Options {
    /// Build with the profile of development: quick to build, and large
    #[arg(long)]
    pub(crate) debug: bool,
    /// Build for this machine only
    #[arg(long)]
    pub(crate) host: bool,
    /// Then install the wheel and the packages of npm into empty folders, and run their programs without Rust
    #[arg(long)]
    pub(crate) check: bool,
}

/// The version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// A wheel of the profile of release must not be larger. The index of Python accepts 100 MB, and an installation should take seconds.
const MAX_WHEEL_BYTES: u64 = 20_000_000;

pub(crate) fn run(options: Options) -> Result<(), Failure> {
    let out = root().join("dist");
    folders::remove(&out)?;
    folders::create(&out)?;
    let builder = Builder::prepare(options)?;
    let builds = builder.build_all()?;
    // The pages and scripts are the same for all targets, and only this machine's program can be run here.
    let generated = generate(&builds)?;
    let files = generated.files()?;
    for build in &builds {
        archive::write(&out, build, &files)?;
    }
    let platforms = npm::write(&out, &builds)?;
    let wheels = wheel::write(&out, &builds)?;
    sbom::write(&out)?;
    write_checksums(&out)?;
    for wheel in &wheels {
        let bytes = folders::size(wheel)?;
        progress(&format!("    {} has {:.1} MB", wheel.file_name().unwrap_or_default(), bytes as f64 / 1e6));
        if !options.debug && bytes > MAX_WHEEL_BYTES {
            return Err(Failure::Interop(format!("{wheel} is larger than {MAX_WHEEL_BYTES} bytes")));
        }
    }
    if options.check { install_test::run(&out, &wheels, &platforms) } else { Ok(()) }
}

/// The manual pages and completion scripts, in a temporary folder.
struct Generated(tempfile::TempDir);

/// A file of an archive: its path there, and where it lies here.
type ArchiveFile = (String, Utf8PathBuf);

impl Generated {
    fn folder(&self) -> Result<&Utf8Path, Failure> {
        Utf8Path::from_path(self.0.path())
            .ok_or_else(|| Failure::Interop("the temporary folder is not UTF-8".to_owned()))
    }

    fn files(&self) -> Result<Vec<ArchiveFile>, Failure> {
        let folder = self.folder()?;
        let mut files: Vec<_> =
            LICENSES.iter().chain(&["README.md"]).map(|name| ((*name).to_owned(), root().join(name))).collect();
        for part in ["man/man1", "completions"] {
            for path in folders::files(&folder.join(part))? {
                files.push((format!("{part}/{}", path.file_name().unwrap_or_default()), path));
            }
        }
        Ok(files)
    }
}

/// The scripts, and the file names that the shells expect.
const COMPLETIONS: [(&str, &str); 4] = [
    ("bash", "counterproof.bash"),
    ("zsh", "_counterproof"),
    ("fish", "counterproof.fish"),
    ("powershell", "counterproof.ps1"),
];

fn generate(builds: &[Build]) -> Result<Generated, Failure> {
    let runnable = builds.iter().find(|build| build.runs_here());
    let program = runnable.map(|build| &build.counterproof).ok_or_else(|| {
        Failure::Interop("no program for this machine could be built, which writes the manual pages".to_owned())
    })?;
    let temporary =
        tempfile::tempdir().map_err(|source| Failure::File { path: "the temporary folder".into(), source })?;
    let generated = Generated(temporary);
    let folder = generated.folder()?;
    folders::output(program, &["man", folder.join("man/man1").as_str()])?;
    folders::create(&folder.join("completions"))?;
    for (shell, name) in COMPLETIONS {
        let script = folders::output(program, &["completions", shell])?;
        folders::write(&folder.join("completions").join(name), &script)?;
    }
    Ok(generated)
}

/// Writes the SHA-256 of each file, in the format of `sha256sum`.
fn write_checksums(out: &Utf8Path) -> Result<(), Failure> {
    let mut sums = String::new();
    for path in folders::files(out)? {
        let digest = Sha256::digest(folders::read(&path)?);
        let digits = digest.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let _ = writeln!(sums, "{digits}  {}", path.file_name().unwrap_or_default());
    }
    folders::write(&out.join("SHA256SUMS"), sums.as_bytes())
}
