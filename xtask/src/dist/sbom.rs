//! The list of all crates in the programs, in the format `CycloneDX` 1.5, from the metadata of cargo.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use camino::Utf8Path;
use serde_json::{Value, json};

use super::VERSION;
use crate::folders;
use crate::step::{Failure, root};

const PROGRAMS: [&str; 2] = ["counterproof", "counterproof-safe-run"];

pub(super) fn write(out: &Utf8Path) -> Result<(), Failure> {
    let document = render(&metadata()?);
    folders::write(&out.join(format!("counterproof-{VERSION}.cdx.json")), format!("{document:#}\n"))
}

fn metadata() -> Result<Value, Failure> {
    let line = "cargo metadata";
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--format-version", "1", "--locked"]).current_dir(root());
    cargo.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = cargo.output().map_err(|source| Failure::Start { line: line.to_owned(), source })?;
    serde_json::from_slice(&output.stdout).map_err(|_| Failure::Step(line.to_owned()))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn render(metadata: &Value) -> Value {
    let packages: BTreeMap<&str, &Value> =
        list(metadata, "packages").iter().map(|package| (text(package, "id"), package)).collect();
    let uses: BTreeMap<&str, Vec<&str>> =
        list(&metadata["resolve"], "nodes").iter().map(|node| (text(node, "id"), linked(node))).collect();
    let roots = packages.iter().filter(|(_, package)| PROGRAMS.contains(&text(package, "name")));
    let mut open: Vec<&str> = roots.map(|(id, _)| *id).collect();
    let mut found: BTreeSet<&str> = BTreeSet::new();
    while let Some(id) = open.pop() {
        if found.insert(id) {
            open.extend(uses.get(id).into_iter().flatten());
        }
    }
    let components: Vec<_> = found.iter().filter_map(|id| packages.get(id)).map(|it| component(it)).collect();
    let reference = |id: &&str| packages.get(id).map(|package| purl(package));
    let dependencies: Vec<_> = found
        .iter()
        .map(|id| {
            let uses: BTreeSet<_> = uses.get(id).into_iter().flatten().filter_map(reference).collect();
            json!({"ref": reference(id), "dependsOn": uses})
        })
        .collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "counterproof", "version": VERSION}},
        "components": components,
        "dependencies": dependencies,
    })
}

/// The packages that are linked into the program: those of builds and tests are not.
fn linked(node: &Value) -> Vec<&str> {
    let is_linked = |dependency: &&Value| list(dependency, "dep_kinds").iter().any(|kind| kind["kind"].is_null());
    list(node, "deps").iter().filter(is_linked).map(|dependency| text(dependency, "pkg")).collect()
}

fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version"))
}

fn component(package: &Value) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    });
    if let Some(license) = package["license"].as_str() {
        // Older manifests separate alternatives by a slash.
        component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_crates_that_are_linked_are_listed() {
        let package = |name: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let dependency = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("counterproof"), package("used"), package("tested"), package("other")],
            "resolve": {"nodes": [
                {"id": "counterproof", "deps": [dependency("used", Value::Null), dependency("tested", json!("dev"))]},
                {"id": "used", "deps": []},
            ]},
        });
        let document = render(&metadata);
        let names: Vec<_> = list(&document, "components").iter().map(|it| text(it, "name")).collect();
        assert_eq!(names, ["counterproof", "used"]);
        assert_eq!(document["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(document["dependencies"][0]["dependsOn"], json!(["pkg:cargo/used@1.0.0"]));
    }
}
