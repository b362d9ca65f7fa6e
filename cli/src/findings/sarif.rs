//! Findings as SARIF 2.1.0.

use std::borrow::Cow;

use counterproof_report::encode_path;
use counterproof_report::sarif::{
    ArtifactLocation, Configuration, Level, Location, Log, LogicalLocation, PhysicalLocation, Region, Rule, Run,
    SarifResult, Text,
};
use counterproof_validation::{Code, Finding, Report};

pub(super) fn render(report: &Report) -> String {
    let rules = Code::ALL.iter().map(|code| Rule {
        id: Cow::Borrowed(code.as_str()),
        short_description: Text::plain(code.meaning()),
        full_description: None,
        help: Text::plain(code.remedy()),
        default_configuration: Some(Configuration { level: Level::Error }),
    });
    let results = report.findings.iter().map(result).collect();
    crate::json_text::to_json(&Log::new(Run::new(rules.collect(), results)))
}

fn result(finding: &Finding) -> SarifResult<'_> {
    let region =
        finding.position.map(|position| Region { start_line: position.line, start_column: Some(position.column) });
    let logical = LogicalLocation { name: None, fully_qualified_name: Cow::Borrowed(&finding.pointer), kind: "value" };
    SarifResult {
        rule_id: finding.code.as_str(),
        rule_index: Code::ALL.iter().position(|code| *code == finding.code).unwrap_or_default(),
        level: Level::Error,
        message: Text::plain(format!("{}; expected {}", finding.message, finding.expected)),
        locations: [Location {
            physical_location: PhysicalLocation {
                artifact_location: ArtifactLocation { uri: uri(finding.file.as_str()) },
                region,
            },
            logical_locations: (!finding.pointer.is_empty()).then_some([logical]),
        }],
        partial_fingerprints: None,
    }
}

/// A path as a URI reference: an absolute path becomes a `file` URI, and a relative path stays relative.
fn uri(path: &str) -> String {
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    let has_drive = cfg!(windows) && path.as_bytes().get(1) == Some(&b':');
    let scheme = if path.starts_with('/') {
        "file://"
    } else if has_drive {
        "file:///"
    } else {
        ""
    };
    format!("{scheme}{}", encode_path(&path))
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
