//! The rule: the entries of a folder depend on each other one way, where at least one of them is a folder.
//!
//! Files of one folder may import each other, as the parts of one algorithm do.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};

use super::modules::{self, Modules};
use super::resolve;
use crate::step::Failure;
use crate::workspace::packages;

/// An import: the file that imports, and the file that defines what is imported.
type Import = (Utf8PathBuf, Utf8PathBuf);

/// Checks all packages of the workspace. Returns the number of files.
pub(crate) fn check() -> Result<usize, Failure> {
    let mut files = 0;
    let mut cycles = Vec::new();
    for package in packages()? {
        let source = package.join("src");
        let root_file = ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|file| file.is_file());
        let Some(root_file) = root_file else { continue };
        let modules = modules::read(&root_file)?;
        files += modules.values().map(|module| &module.file).collect::<BTreeSet<_>>().len();
        cycles.extend(find(&source, &imports(&modules)));
    }
    if cycles.is_empty() { Ok(files) } else { Err(Failure::Cycles(cycles.join("\n"))) }
}

fn imports(modules: &Modules) -> BTreeSet<Import> {
    let mut imports = BTreeSet::new();
    for (path, module) in modules {
        for dependency in &module.dependencies {
            if let Some(file) = resolve::file(modules, path, dependency)
                && file != module.file
            {
                imports.insert((module.file.clone(), file.to_owned()));
            }
        }
    }
    imports
}

/// Returns one line for each cycle below `source`: the folder, its entries, and an import for each step.
fn find(source: &Utf8Path, imports: &BTreeSet<Import>) -> Vec<String> {
    let mut folders: BTreeMap<&Utf8Path, BTreeMap<(&str, &str), &Import>> = BTreeMap::new();
    for import in imports {
        let (from, to) = import;
        // The two files are entries, or below entries, of the nearest folder that holds both.
        let Some(folder) = from.ancestors().skip(1).find(|folder| to.starts_with(folder)) else { continue };
        let entry = |file: &'_ Utf8PathBuf| -> Option<usize> {
            file.strip_prefix(folder).ok()?.components().next().map(|component| component.as_str().len())
        };
        if let (Some(ours), Some(theirs)) = (entry(from), entry(to)) {
            let start = folder.as_str().len() + 1;
            let step = (&from.as_str()[start..start + ours], &to.as_str()[start..start + theirs]);
            folders.entry(folder).or_default().entry(step).or_insert(import);
        }
    }
    let mut lines = Vec::new();
    for (folder, steps) in folders {
        let edges: BTreeSet<(&str, &str)> = steps.keys().copied().collect();
        for cycle in strongly_connected(&edges) {
            if cycle.iter().all(|entry| folder.join(entry).is_file()) {
                continue;
            }
            let shown = source.parent().unwrap_or(source);
            let name = folder.strip_prefix(shown.parent().unwrap_or(shown)).unwrap_or(folder);
            lines.push(format!("  in {name}/: {}", cycle.iter().copied().collect::<Vec<_>>().join(", ")));
            let within = steps.iter().filter(|((from, to), _)| cycle.contains(from) && cycle.contains(to));
            lines.extend(within.map(|((from, to), (file, other))| {
                let relative = |file: &Utf8Path| file.strip_prefix(source).unwrap_or(file).to_string();
                format!("    {from} → {to}: {} imports {}", relative(file), relative(other))
            }));
        }
    }
    lines
}

/// Groups of at least two nodes that all reach each other.
fn strongly_connected<'n>(edges: &BTreeSet<(&'n str, &'n str)>) -> Vec<BTreeSet<&'n str>> {
    let reached = |start: &'n str, forward: bool| {
        let mut seen = BTreeSet::from([start]);
        let mut pending = vec![start];
        while let Some(node) = pending.pop() {
            for &(from, to) in edges {
                let (here, next) = if forward { (from, to) } else { (to, from) };
                if here == node && seen.insert(next) {
                    pending.push(next);
                }
            }
        }
        seen
    };
    let mut groups = Vec::new();
    let mut grouped = BTreeSet::new();
    for node in edges.iter().flat_map(|&(from, to)| [from, to]) {
        if grouped.contains(node) {
            continue;
        }
        // A folder has few entries, so two searches for each node are cheap enough.
        let group: BTreeSet<&str> = reached(node, true).intersection(&reached(node, false)).copied().collect();
        grouped.extend(group.iter().copied());
        if group.len() > 1 {
            groups.push(group);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a package of these files and returns the cycles that are found in it.
    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let source = Utf8Path::from_path(folder.path()).unwrap().join("package/src");
        for (name, text) in files {
            let file = source.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            write(&file, text);
        }
        let modules = modules::read(&source.join("lib.rs")).unwrap();
        find(&source, &imports(&modules))
    }

    #[expect(clippy::disallowed_methods, reason = "a fixture in a temporary folder need not survive a crash")]
    fn write(file: &Utf8Path, text: &str) {
        std::fs::write(file, text).unwrap();
    }

    #[test]
    fn folders_that_import_each_other_are_a_cycle_even_through_different_files() {
        let found = cycles(&[
            ("lib.rs", "mod load; mod diff;"),
            ("load/mod.rs", "mod read; mod text; pub(crate) use read::Read;"),
            ("load/read.rs", "pub struct Read;"),
            ("load/text.rs", "use crate::diff::Step;"),
            ("diff/mod.rs", "mod step; pub(crate) use step::Step;"),
            ("diff/step.rs", "use crate::load::Read; pub struct Step;"),
        ]);
        assert_eq!(
            found,
            [
                "  in package/src/: diff, load",
                "    diff → load: diff/step.rs imports load/read.rs",
                "    load → diff: load/text.rs imports diff/step.rs",
            ]
        );
    }

    #[test]
    fn files_of_one_folder_may_import_each_other() {
        let found = cycles(&[
            ("lib.rs", "mod diff;"),
            ("diff/mod.rs", "mod a; mod b;"),
            ("diff/a.rs", "use super::b::B; pub struct A;"),
            ("diff/b.rs", "use super::a::A; pub struct B;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_path_in_a_body_or_in_a_macro_is_an_import() {
        let found = cycles(&[
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod x;"),
            ("a/x.rs", "pub fn f() { println!(\"{}\", crate::b::y::g()); }"),
            ("b/mod.rs", "pub mod y;"),
            ("b/y.rs", "pub fn g() -> u8 { crate::a::x::f(); 0 }"),
        ]);
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn re_exports_and_tests_are_no_imports() {
        let found = cycles(&[
            ("lib.rs", "mod a; mod b; pub use a::x::X;"),
            ("a/mod.rs", "pub mod x;"),
            ("a/x.rs", "pub struct X; #[cfg(test)] mod tests { use crate::b::y::Y; }"),
            ("b/mod.rs", "pub mod y;"),
            ("b/y.rs", "use crate::X; pub struct Y;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
