//! Findings as SARIF 2.1.0 (OASIS standard, 2020), limited to the parts that code hosts and editors read.

use counterproof_validation::{Code, Report};
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Log<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    tool: Tool,
    column_kind: &'static str,
    results: Vec<Finding<'a>>,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    semantic_version: &'static str,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    id: &'static str,
    short_description: Text<&'static str>,
    help: Text<&'static str>,
    default_configuration: Configuration,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct Text<T> {
    text: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding<'a> {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Text<String>,
    locations: [Location<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location<'a> {
    physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    logical_locations: Option<[LogicalLocation<'a>; 1]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
    start_column: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation<'a> {
    fully_qualified_name: &'a str,
    kind: &'static str,
}

pub(super) fn render(report: &Report) -> String {
    let rules = Code::ALL.iter().map(|code| Rule {
        id: code.as_str(),
        short_description: Text { text: code.meaning() },
        help: Text { text: code.remedy() },
        default_configuration: Configuration { level: "error" },
    });
    let driver = Driver { name: "counterproof", semantic_version: env!("CARGO_PKG_VERSION"), rules: rules.collect() };
    let results = report.findings.iter().map(result).collect();
    super::to_json(&Log {
        schema: "https://json.schemastore.org/sarif-2.1.0.json",
        version: "2.1.0",
        runs: [Run { tool: Tool { driver }, column_kind: "unicodeCodePoints", results }],
    })
}

fn result(finding: &counterproof_validation::Finding) -> Finding<'_> {
    let region = finding.position.map(|position| Region { start_line: position.line, start_column: position.column });
    let logical = LogicalLocation { fully_qualified_name: &finding.pointer, kind: "value" };
    Finding {
        rule_id: finding.code.as_str(),
        rule_index: Code::ALL.iter().position(|code| *code == finding.code).unwrap_or_default(),
        level: "error",
        message: Text { text: format!("{}; expected {}", finding.message, finding.expected) },
        locations: [Location {
            physical_location: PhysicalLocation {
                artifact_location: ArtifactLocation { uri: uri(finding.file.as_str()) },
                region,
            },
            logical_locations: (!finding.pointer.is_empty()).then_some([logical]),
        }],
    }
}

/// Converts a path to a URI reference, relative if the path is. Characters other than unreserved ones are percent-encoded.
fn uri(path: &str) -> String {
    use std::fmt::Write as _;

    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    let mut uri = String::new();
    if path.starts_with('/') {
        uri.push_str("file://");
    } else if path.as_bytes().get(1) == Some(&b':') && cfg!(windows) {
        uri.push_str("file:///");
    }
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fixture;
    use super::*;

    #[test]
    fn results_refer_to_listed_rules_and_files_as_uris() {
        let log: Value = serde_json::from_str(&render(&fixture::report())).unwrap();
        let run = &log["runs"][0];
        assert_eq!(log["version"], "2.1.0");
        assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), Code::ALL.len());
        for result in run["results"].as_array().unwrap() {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
        }
        let location = &run["results"][0]["locations"][0];
        assert_eq!(location["physicalLocation"]["artifactLocation"]["uri"], "runs/new/r%201/a%2Cb%3Ac.json");
        assert_eq!(location["physicalLocation"]["region"], json!({"startLine": 7, "startColumn": 14}));
        assert_eq!(run["results"][1]["locations"][0]["physicalLocation"].get("region"), None);
    }

    #[test]
    fn absolute_paths_become_file_uris() {
        assert_eq!(uri("/tmp/é"), "file:///tmp/%C3%A9");
    }
}
