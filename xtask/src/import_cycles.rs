//! Import cycles: which file imports which, and whether the folders of a crate depend on each other one way.
//!
//! ```text
//! package folder → modules (files, items, imports) → resolve (file → file) → cycles (folder by folder)
//! ```
//!
//! The imports come from the syntax tree, so a cycle is found before anything is compiled. Imports inside
//! `#[cfg(test)]` do not count, and neither do the `pub use` lines of a module that only re-exports.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, UseTree, Visibility};

use crate::step::Failure;
use crate::workspace::{packages, parse};

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
        let modules = read(&root_file)?;
        files += modules.values().map(|module| &module.file).collect::<BTreeSet<_>>().len();
        cycles.extend(find(&source, &imports(&modules)));
    }
    if cycles.is_empty() { Ok(files) } else { Err(Failure::Cycles(cycles.join("\n"))) }
}

fn imports(modules: &Modules) -> BTreeSet<Import> {
    let mut imports = BTreeSet::new();
    for (path, module) in modules {
        for dependency in &module.dependencies {
            if let Some(file) = file(modules, path, dependency)
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
            // Files of one folder may import each other: the check is about folders.
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

/// A path as it is written, such as `crate :: diff :: Table`, or `super :: *` for a glob.
pub(super) type Segments = Vec<String>;

/// One module: its file, the names that it defines, and what it imports.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) file: Utf8PathBuf,
    /// Names of child modules; the path of a child is the module's own path plus the name.
    pub(super) children: Vec<String>,
    /// Imported names and where they come from. A re-export is resolved through this map.
    pub(super) aliases: BTreeMap<String, Segments>,
    /// The prefixes of glob imports.
    pub(super) globs: Vec<Segments>,
    /// Paths that make this module depend on another one.
    pub(super) dependencies: Vec<Segments>,
}

/// The modules of a package by module path; the root module has the empty path.
pub(super) type Modules = BTreeMap<Segments, Module>;

/// Reads the package whose root module is `root_file`.
pub(super) fn read(root_file: &Utf8Path) -> Result<Modules, Failure> {
    let mut modules = Modules::new();
    let mut pending = vec![(Segments::new(), root_file.to_owned())];
    while let Some((path, file)) = pending.pop() {
        let syntax = parse(&file)?;
        let mut reader = Reader { file: &file, path: path.clone(), modules: &mut modules, files: Vec::new() };
        reader.module(&syntax.items);
        for child in reader.files {
            pending.push((child.clone(), child_file(&file, &path, &child)));
        }
    }
    Ok(modules)
}

/// Returns the file of the child module `child`, declared in `file`, whose own module path is `path`.
fn child_file(file: &Utf8Path, path: &Segments, child: &Segments) -> Utf8PathBuf {
    let folder = file.parent().unwrap_or(file);
    let is_folder_module = path.is_empty() || file.file_name() == Some("mod.rs");
    let mut base = if is_folder_module { folder.to_owned() } else { folder.join(file.file_stem().unwrap_or_default()) };
    // Inline modules between the file and the child are folders.
    for segment in &child[path.len()..child.len() - 1] {
        base.push(segment);
    }
    let name = child.last().map_or("", String::as_str);
    let nested = base.join(name).join("mod.rs");
    if nested.is_file() { nested } else { base.join(format!("{name}.rs")) }
}

/// Reads the items of one file into modules: its own, and one for each inline module.
struct Reader<'m> {
    file: &'m Utf8Path,
    path: Segments,
    modules: &'m mut Modules,
    /// Module paths declared here that have a file of their own.
    files: Vec<Segments>,
}

impl Reader<'_> {
    fn module(&mut self, items: &[Item]) {
        let mut module = Module { file: self.file.to_owned(), ..Module::default() };
        for item in items.iter().filter(|item| !is_test_only(attributes(item))) {
            match item {
                Item::Mod(child) => {
                    module.children.push(child.ident.to_string());
                    self.child(child);
                }
                Item::Use(import) => {
                    let mut leaves = Vec::new();
                    flatten(&import.tree, &mut Segments::new(), &mut leaves);
                    // A re-export hands a name on; it does not use it.
                    if matches!(import.vis, Visibility::Inherited) {
                        module.dependencies.extend(leaves.iter().map(|leaf| leaf.path.clone()));
                    }
                    for leaf in leaves {
                        module.define(leaf);
                    }
                }
                other => Paths(&mut module.dependencies).visit_item(other),
            }
        }
        self.modules.insert(self.path.clone(), module);
    }

    fn child(&mut self, child: &ItemMod) {
        let mut path = self.path.clone();
        path.push(child.ident.to_string());
        match &child.content {
            None => self.files.push(path),
            Some((_, items)) => {
                let outer = std::mem::replace(&mut self.path, path);
                self.module(items);
                self.path = outer;
            }
        }
    }
}

impl Module {
    fn define(&mut self, Leaf { name, path }: Leaf) {
        match name {
            Some(name) => {
                self.aliases.insert(name, path);
            }
            None => self.globs.push(path),
        }
    }
}

/// One imported path. A glob has no name.
struct Leaf {
    name: Option<String>,
    path: Segments,
}

fn flatten(tree: &UseTree, prefix: &mut Segments, leaves: &mut Vec<Leaf>) {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, leaves);
            prefix.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, prefix, leaves)),
        UseTree::Glob(_) => leaves.push(Leaf { name: None, path: prefix.clone() }),
        UseTree::Name(name) => leaves.push(leaf(prefix, &name.ident.to_string(), None)),
        UseTree::Rename(rename) => {
            leaves.push(leaf(prefix, &rename.ident.to_string(), Some(rename.rename.to_string())));
        }
    }
}

fn leaf(prefix: &Segments, name: &str, rename: Option<String>) -> Leaf {
    let mut path = prefix.clone();
    if name != "self" {
        path.push(name.to_owned());
    }
    let name = rename.or_else(|| path.last().cloned());
    Leaf { name, path }
}

/// Collects the paths in an item that start at a module: `crate::…`, `super::…`, `self::…` or a name with a tail.
struct Paths<'p>(&'p mut Vec<Segments>);

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        // A single name is defined in the module, or by an import that is read already.
        if path.segments.len() > 1 {
            self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // The arguments of a macro are tokens, not syntax: take each run of `name :: name`.
        tokens(call.tokens.clone(), self.0);
        visit::visit_macro(self, call);
    }

    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test_only(attributes(item)) {
            visit::visit_item(self, item);
        }
    }
}

fn tokens(stream: proc_macro2::TokenStream, paths: &mut Vec<Segments>) {
    let mut path = Segments::new();
    let mut colons = 0;
    let finish = |path: &mut Segments, paths: &mut Vec<Segments>| {
        let path = std::mem::take(path);
        if path.len() > 1 {
            paths.push(path);
        }
    };
    for token in stream {
        match token {
            proc_macro2::TokenTree::Ident(name) => {
                if colons != 2 {
                    finish(&mut path, paths);
                }
                path.push(name.to_string());
                colons = 0;
            }
            proc_macro2::TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
            proc_macro2::TokenTree::Group(group) => {
                finish(&mut path, paths);
                tokens(group.stream(), paths);
                colons = 0;
            }
            _ => {
                finish(&mut path, paths);
                colons = 0;
            }
        }
    }
    finish(&mut path, paths);
}

/// True for `#[cfg(test)]`, and for a `#[test]` function.
pub(crate) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Re-exports of re-exports end here; a longer chain is a mistake in the source.
const MOST_RE_EXPORTS: usize = 16;

/// Returns the file that defines what `path` names, written in the module `from`. `None` for names of other crates.
pub(super) fn file<'m>(modules: &'m Modules, from: &Segments, path: &[String]) -> Option<&'m Utf8Path> {
    resolve(modules, from, path, MOST_RE_EXPORTS)
}

fn resolve<'m>(modules: &'m Modules, from: &Segments, path: &[String], budget: usize) -> Option<&'m Utf8Path> {
    let (first, rest) = path.split_first()?;
    let module = modules.get(from)?;
    let (start, rest) = match first.as_str() {
        "crate" => (Segments::new(), rest),
        "self" => (from.clone(), rest),
        "super" => (from.split_last()?.1.to_vec(), rest),
        name if module.children.iter().any(|child| child == name) => (from.clone(), path),
        name => {
            let alias = module.aliases.get(name)?;
            // `use serde::Serialize` defines the name `Serialize`, not a path that starts with it.
            let full: Segments = alias.iter().chain(rest).cloned().collect();
            return if alias == path { None } else { resolve(modules, from, &full, budget.checked_sub(1)?) };
        }
    };
    descend(modules, start, rest, budget)
}

/// Follows `rest` from the module `at`: into child modules, then through re-exports, and ends at an item.
fn descend<'m>(modules: &'m Modules, mut at: Segments, rest: &[String], budget: usize) -> Option<&'m Utf8Path> {
    for (index, segment) in rest.iter().enumerate() {
        let module = modules.get(&at)?;
        if segment == "super" {
            at.pop();
        } else if module.children.contains(segment) {
            at.push(segment.clone());
        } else if let Some(alias) = module.aliases.get(segment) {
            let full: Segments = alias.iter().chain(&rest[index + 1..]).cloned().collect();
            return resolve(modules, &at, &full, budget.checked_sub(1)?);
        } else {
            let defined = module.globs.iter().find_map(|glob| {
                let full: Segments = glob.iter().chain(&rest[index..]).cloned().collect();
                let file = resolve(modules, &at, &full, budget.checked_sub(1)?)?;
                (file != module.file).then_some(file)
            });
            return Some(defined.unwrap_or(&module.file));
        }
    }
    modules.get(&at).map(|module| module.file.as_path())
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
        let modules = read(&source.join("lib.rs")).unwrap();
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
