//! The wheels: both programs and no Python code, in the binary format of PEP 427.
//!
//! Written here and not by maturin, which builds a wheel from the source (`pyproject.toml`): it packs the programs of one crate only,
//! and would compile everything again.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::archive::{FILE, PROGRAM};
use super::targets::{Build, Linking};
use super::{LICENSES, VERSION};
use crate::folders;
use crate::step::{Failure, progress, root};

/// Writes the wheel of each build. Returns those that this machine can install.
pub(super) fn write(out: &Utf8Path, builds: &[Build]) -> Result<Vec<Utf8PathBuf>, Failure> {
    let mut usable = Vec::new();
    for build in builds {
        let Some(tag) = platform_tag(build) else {
            progress(&format!("==> skipped: the wheel for {} (only Linux has one)", build.target));
            continue;
        };
        let path = out.join(format!("counterproof-{VERSION}-py3-none-{tag}.whl"));
        write_one(&path, build, &tag)?;
        if build.runs_here() {
            usable.push(path);
        }
    }
    Ok(usable)
}

/// The platforms of a wheel, separated by dots.
fn platform_tag(build: &Build) -> Option<String> {
    let (processor, rest) = build.target.split_once('-')?;
    if !rest.contains("linux") {
        return None;
    }
    Some(match build.linking {
        // Needs no C library.
        Linking::Static => format!("manylinux2014_{processor}.musllinux_1_1_{processor}"),
        Linking::OldGlibc => format!("manylinux2014_{processor}"),
        // Installs on this machine, and PyPI refuses it.
        Linking::ThisMachine => format!("linux_{processor}"),
    })
}

/// A wheel in memory: a zip file whose last entry has the digests of all others.
struct Wheel {
    zip: ZipWriter<Cursor<Vec<u8>>>,
    compression: CompressionMethod,
    record: String,
}

impl Wheel {
    fn add(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), Failure> {
        let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        let _ = writeln!(self.record, "{path},sha256={digest},{}", bytes.len());
        self.add_unrecorded(path, bytes, mode)
    }

    fn add_unrecorded(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), Failure> {
        // The same time in every build, so that equal files make an equal wheel.
        let options = SimpleFileOptions::default()
            .compression_method(self.compression)
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        let failed = |source: std::io::Error| Failure::File { path: path.into(), source };
        self.zip.start_file(path, options).map_err(|error| failed(error.into()))?;
        self.zip.write_all(bytes).map_err(failed)
    }
}

fn write_one(path: &Utf8Path, build: &Build, tag: &str) -> Result<(), Failure> {
    let compression = if build.compressed { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let mut wheel = Wheel { zip: ZipWriter::new(Cursor::new(Vec::new())), compression, record: String::new() };
    for (name, program) in build.programs() {
        let target = format!("counterproof-{VERSION}.data/scripts/{name}");
        wheel.add(&target, &folders::read(program)?, PROGRAM)?;
    }
    let info = format!("counterproof-{VERSION}.dist-info");
    let tags = tag.split('.').map(|tag| format!("Tag: py3-none-{tag}\n")).collect::<Vec<_>>().concat();
    let about = format!("Wheel-Version: 1.0\nGenerator: counterproof-dist\nRoot-Is-Purelib: false\n{tags}");
    wheel.add(&format!("{info}/WHEEL"), about.as_bytes(), FILE)?;
    wheel.add(&format!("{info}/METADATA"), &metadata()?, FILE)?;
    for license in LICENSES {
        wheel.add(&format!("{info}/licenses/{license}"), &folders::read(&root().join(license))?, FILE)?;
    }
    let record = format!("{}{info}/RECORD,,\n", wheel.record);
    wheel.add_unrecorded(&format!("{info}/RECORD"), record.as_bytes(), FILE)?;
    let bytes = wheel.zip.finish().map_err(|error| Failure::File { path: path.into(), source: error.into() })?;
    let bytes = bytes.into_inner();
    progress(&format!("==> {path}: {:.1} MB", bytes.len() as f64 / 1e6));
    folders::write(path, bytes)
}

/// The metadata, with the README as the description.
fn metadata() -> Result<Vec<u8>, Failure> {
    let licenses = LICENSES.map(|license| format!("License-File: {license}\n")).concat();
    let mut text = format!(
        "Metadata-Version: 2.4\nName: counterproof\nVersion: {VERSION}\n\
         Summary: Finds regressions between two versions of an AI agent\n\
         License-Expression: MIT OR Apache-2.0\n{licenses}Requires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n"
    )
    .into_bytes();
    text.extend(folders::read(&root().join("README.md"))?);
    Ok(text)
}
