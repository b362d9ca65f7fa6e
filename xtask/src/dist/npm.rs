//! The packages of npm: one for each platform with its programs, and the main one, which starts them. They have no scripts that run
//! when they are installed: npm does not run such scripts by default.

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value, json};

use super::archive::{Archive, FILE, PROGRAM};
use super::targets::{Build, Linking};
use super::{LICENSES, VERSION};
use crate::folders;
use crate::step::{Failure, root};

/// The main package.
pub(super) const MAIN: &str = "counterproof";

/// The scope of the packages for platforms.
const SCOPE: &str = "@counterproof";

/// The packages for platforms by target: the name within the scope, and what npm calls the system, processor and C library.
const PLATFORMS: [(&str, &str, &str); 2] = [("x86_64", "linux-x64", "x64"), ("aarch64", "linux-arm64", "arm64")];

/// Returns the platform of a target.
fn platform(target: &str) -> Option<(&'static str, &'static str)> {
    let is_linux = target.contains("-linux-");
    let found = PLATFORMS.into_iter().find(|(processor, ..)| is_linux && target.starts_with(processor));
    found.map(|(_, name, cpu)| (name, cpu))
}

/// Writes all packages, and returns the files of those that this machine can use, the main one first.
pub(super) fn write(out: &Utf8Path, builds: &[Build]) -> Result<Vec<Utf8PathBuf>, Failure> {
    let mut usable = vec![out.join(format!("{MAIN}-{VERSION}.tgz"))];
    let mut dependencies = Map::new();
    for build in builds {
        let Some((name, cpu)) = platform(&build.target) else { continue };
        let path = out.join(format!("counterproof-{name}-{VERSION}.tgz"));
        write_platform(&path, build, (name, cpu))?;
        if build.runs_here() {
            usable.push(path);
        }
        dependencies.insert(format!("{SCOPE}/{name}"), json!(VERSION));
    }
    let launcher = folders::read(&root().join("packaging/npm/launcher.js"))?;
    let mut manifest = manifest(MAIN);
    manifest["bin"] = json!({"counterproof": "bin/counterproof.js", "safe-run": "bin/safe-run.js"});
    manifest["engines"] = json!({"node": ">=18"});
    manifest["optionalDependencies"] = Value::Object(dependencies);
    let mut archive = begin(&manifest, true)?;
    archive.add("package/README.md", &folders::read(&root().join("packaging/npm/README.md"))?, FILE)?;
    for program in ["counterproof", "safe-run"] {
        // The launcher starts the program of its own name.
        archive.add(&format!("package/bin/{program}.js"), &launcher, PROGRAM)?;
    }
    archive.write(&usable[0])?;
    Ok(usable)
}

fn write_platform(path: &Utf8Path, build: &Build, (name, cpu): (&str, &str)) -> Result<(), Failure> {
    let mut manifest = manifest(&format!("{SCOPE}/{name}"));
    manifest["os"] = json!(["linux"]);
    manifest["cpu"] = json!([cpu]);
    if build.linking != Linking::Static {
        // A static program needs no C library.
        manifest["libc"] = json!(["glibc"]);
    }
    let mut archive = begin(&manifest, build.compressed)?;
    for (program, path) in build.programs() {
        archive.add(&format!("package/bin/{program}"), &folders::read(path)?, PROGRAM)?;
    }
    archive.write(path)
}

fn manifest(name: &str) -> Value {
    json!({
        "name": name,
        "version": VERSION,
        "description": "Finds regressions between two versions of an AI agent",
        "license": "MIT OR Apache-2.0",
    })
}

fn begin(manifest: &Value, compressed: bool) -> Result<Archive, Failure> {
    let mut archive = Archive::new(compressed);
    archive.add("package/package.json", format!("{manifest:#}\n").as_bytes(), FILE)?;
    for license in LICENSES {
        archive.add(&format!("package/{license}"), &folders::read(&root().join(license))?, FILE)?;
    }
    Ok(archive)
}
