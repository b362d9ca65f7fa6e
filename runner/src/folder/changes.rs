//! Differences between two run documents: the cases, and the settings that affect artifacts.

use std::fmt;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, Run};
use serde_json::Value;

/// Fields of `run.json` that do not affect artifacts: time, place, pace and statistics. A run may be resumed with other values.
/// All other fields must be equal, unknown fields of later versions included.
const IGNORED_FIELDS: [&str; 26] = [
    "run_id",
    "generated_at",
    "cases_path",
    "cases_path_as_passed",
    "out_dir",
    "runner_version",
    "repo_commit",
    "dirty",
    "node_version",
    "concurrency",
    "concurrency_auto",
    "rate",
    "fail_fast",
    "stats",
    "interrupted",
    "failed",
    "selection",
    "resumes",
    "merged_from",
    "group_id",
    "repeat",
    "repeats",
    "deterministic",
    // Expectations are judged after the run.
    "expectation_digests",
    // Cases are compared one by one.
    "selected_case_ids",
    "case_digests",
];

/// The field that marks a run that failed: it exits with 1 or 3, and is never the latest baseline.
pub(crate) const FAILED_RUN: &str = "failed";

/// A message lists at most this many changes, and counts the rest.
const MAX_LISTED: usize = 10;

/// A message quotes values up to this length, in bytes of JSON.
const MAX_VALUE_BYTES: usize = 120;

/// The differences between two run documents. A run can be resumed if there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes(Vec<Change>);

/// One difference between two run documents.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    CaseAdded(CaseId),
    CaseInputChanged(CaseId),
    CaseRemoved(CaseId),
    /// The run has no digests of its cases, so the cases cannot be compared.
    NoDigests,
    /// The values of a field differ. They are too long for a message.
    LongField {
        path: String,
    },
    Field {
        path: String,
        before: Value,
        after: Value,
    },
}

impl Changes {
    /// Reports whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, change) in self.0.iter().take(MAX_LISTED).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{change}")?;
        }
        match self.0.len().saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CaseAdded(case) => write!(f, "the case `{case}` was added"),
            Self::CaseInputChanged(case) => write!(f, "the input of the case `{case}` changed"),
            Self::CaseRemoved(case) => write!(f, "the case `{case}` was removed"),
            Self::NoDigests => f.write_str("its run.json has no digests of its cases"),
            Self::LongField { path } => write!(f, "`{path}` differs"),
            Self::Field { path, before, after } => write!(f, "`{path}` changed from {before} to {after}"),
        }
    }
}

/// Compares the document that a run would start with now with the one that it was started with.
pub(crate) fn changes(started: &Run, now: &Run) -> Changes {
    let mut found = Vec::new();
    match (&started.case_digests, &now.case_digests) {
        (Some(before), Some(after)) => {
            for (case, digest) in after {
                match before.get(case) {
                    None => found.push(Change::CaseAdded(case.clone())),
                    Some(known) if known != digest => found.push(Change::CaseInputChanged(case.clone())),
                    Some(_) => {}
                }
            }
            let gone = before.keys().filter(|case| !after.contains_key(*case));
            found.extend(gone.cloned().map(Change::CaseRemoved));
        }
        _ => found.push(Change::NoDigests),
    }
    let (mut before, mut after) = (fields(started), fields(now));
    for fields in [&mut before, &mut after] {
        // A later call may plan more confirmation runs; those that exist stay as they are.
        if let Some(Value::Object(confirmation)) = fields.get_mut("confirmation") {
            confirmation.remove("count");
        }
    }
    let cases_differ = !found.is_empty();
    let mut names: Vec<&String> = after.keys().collect();
    names.extend(before.keys().filter(|name| !after.contains_key(*name)));
    for name in names {
        // The digest over all cases and the positions of the shard follow from the cases, so they would repeat the difference.
        if !IGNORED_FIELDS.contains(&name.as_str()) && !(cases_differ && (name == "cases_digest" || name == "shard")) {
            let value = |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
            differences(name, &value(&before), &value(&after), &mut found);
        }
    }
    Changes(found)
}

/// Compares the settings of two shards of one run.
pub(crate) fn differing_settings(one: &Run, other: &Run) -> Changes {
    // Each shard has its own cases, but the cases of the whole run and the commit must be equal.
    let (mut one, mut other) = (fields(one), fields(other));
    let mut found = Vec::new();
    let all = ["version", "cases_digest", "shard", "group_id", "repeat", "repeats", "deterministic"];
    for fields in [&mut one, &mut other] {
        if let Some(Value::Object(shard)) = fields.get_mut("shard") {
            shard.retain(|name, _| ["run_id", "count", "cases_total"].contains(&name.as_str()));
        }
    }
    // A shard that ran outside of a checkout has no commit to compare.
    let known = one.get("repo_commit").is_some() && other.get("repo_commit").is_some();
    let mut names: Vec<&String> = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))).collect();
    names.retain(|name| {
        all.contains(&name.as_str()) || !IGNORED_FIELDS.contains(&name.as_str()) || (known && *name == "repo_commit")
    });
    for name in names {
        let value = |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
        differences(name, &value(&one), &value(&other), &mut found);
    }
    Changes(found)
}

fn fields(run: &Run) -> serde_json::Map<String, Value> {
    match serde_json::to_value(run) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    }
}

fn differences(path: &str, before: &Value, after: &Value, found: &mut Vec<Change>) {
    if let (Value::Object(before), Value::Object(after)) = (before, after) {
        let mut names: Vec<&String> = after.keys().collect();
        names.extend(before.keys().filter(|name| !after.contains_key(*name)));
        for name in names {
            let value = |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
            differences(&format!("{path}.{name}"), &value(before), &value(after), found);
        }
        return;
    }
    if before == after {
        return;
    }
    let path = path.to_owned();
    // Long values and digests would make the message unreadable.
    let is_long = before.to_string().len().max(after.to_string().len()) > MAX_VALUE_BYTES;
    if is_long || path.starts_with("cases_digest") {
        found.push(Change::LongField { path });
    } else {
        found.push(Change::Field { path, before: before.clone(), after: after.clone() });
    }
}

/// Returns the path from the folder `from` to `target`. Both must be absolute and free of `..`.
pub(crate) fn relative(target: &Utf8Path, from: &Utf8Path) -> String {
    // Without a common folder below the root, the relative path would contain the complete path of `target` on this
    // machine.
    let shared = target.components().zip(from.components()).take_while(|(a, b)| a == b).map(|(a, _)| a);
    let has_name = |component: &Utf8Component| matches!(component, Utf8Component::Normal(_));
    let (shared, names) = shared.fold((0, 0), |(all, names), part| (all + 1, names + usize::from(has_name(&part))));
    if names == 0 {
        return target.file_name().unwrap_or(".").to_owned();
    }
    let up = from.components().skip(shared).map(|_| "..");
    let down = target.components().skip(shared).map(|component| component.as_str());
    let path: Vec<&str> = up.chain(down).collect();
    if path.is_empty() { ".".to_owned() } else { path.join("/") }
}

/// Returns the absolute form of a path: canonical if the path exists, lexical otherwise.
pub(crate) fn absolute(path: &Utf8Path) -> Utf8PathBuf {
    path.canonicalize_utf8().or_else(|_| camino::absolute_utf8(path)).unwrap_or_else(|_| path.to_owned())
}

/// Converts a path relative to the folder `from` into one relative to the folder `to`. Both folders must be absolute.
pub(crate) fn rebase_path(path: &str, from: &Utf8Path, to: &Utf8Path) -> String {
    if Utf8Path::new(path).components().count() < 2 && !path.starts_with("..") {
        // A bare file name means that the folder was deliberately left out.
        return path.to_owned();
    }
    relative(&normalised(&from.join(path)), &normalised(to))
}

/// Removes `.` and `..` lexically.
fn normalised(path: &Utf8Path) -> Utf8PathBuf {
    let mut normalised = Utf8PathBuf::new();
    for component in path.components() {
        match component {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => drop(normalised.pop()),
            other => normalised.push(other.as_str()),
        }
    }
    normalised
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(change: impl FnOnce(&mut Value)) -> Run {
        let digest = "0".repeat(64);
        let mut document = json!({
            "schema_version": "run.v1", "run_id": "r1", "version": "new", "generated_at": "2026-01-31",
            "base_url": "http://a", "cases_path": "c.json", "out_dir": "..", "selected_case_ids": ["a", "b"],
            "runner_version": "v", "timeout_ms": 15000, "concurrency": 1, "limits": {"max_body_bytes": 10},
            "case_digests": {"a": digest, "b": digest}, "cases_digest": digest
        });
        change(&mut document);
        serde_json::from_value(document).unwrap()
    }

    fn described(change: impl FnOnce(&mut Value)) -> String {
        changes(&run(|_| {}), &run(change)).to_string()
    }

    #[test]
    fn ignored_fields_may_change() {
        assert_eq!(described(|_| {}), "");
        let change = |run: &mut Value| {
            run["concurrency"] = json!(64);
            run["repo_commit"] = json!("abc");
            run["stats"] = json!({"cases_total": 2});
            run["cases_path"] = json!("moved/c.json");
        };
        assert_eq!(described(change), "");
    }

    #[test]
    fn each_change_is_listed() {
        let change = |run: &mut Value| {
            run["case_digests"] = json!({"a": "1".repeat(64), "c": "0".repeat(64)});
            run["cases_digest"] = json!("1".repeat(64));
            run["timeout_ms"] = json!(1000);
            run["limits"]["max_body_bytes"] = json!(20);
            run["protocol"] = json!("openai-chat");
        };
        let expected = "the input of the case `a` changed; the case `c` was added; the case `b` was removed; \
            `timeout_ms` changed from 15000 to 1000; `limits.max_body_bytes` changed from 10 to 20; \
            `protocol` changed from null to \"openai-chat\"";
        assert_eq!(described(change), expected);
    }
}

#[cfg(all(test, unix))]
mod path_tests {
    use super::*;

    fn path_to(target: &str, from: &str) -> String {
        relative(Utf8Path::new(target), Utf8Path::new(from))
    }

    #[test]
    fn a_path_may_go_up_and_down() {
        assert_eq!(path_to("/w/cases.json", "/w/runs/new/r1"), "../../../cases.json");
        assert_eq!(path_to("/w/runs/new/r1/cases.json", "/w/runs/new/r1"), "cases.json");
        assert_eq!(path_to("/w/runs", "/w/runs/new/r1"), "../..");
        assert_eq!(path_to("/w", "/w"), ".");
    }

    #[test]
    fn a_path_can_be_rebased() {
        let rebased = |path: &str, to: &str| rebase_path(path, Utf8Path::new("/w/a/new/r1"), Utf8Path::new(to));
        assert_eq!(rebased("../../../cases.json", "/w/runs/new/r2"), "../../../cases.json");
        assert_eq!(rebased("../../cases.json", "/w/r"), "../a/cases.json");
        assert_eq!(rebased("cases.json", "/elsewhere/r"), "cases.json");
    }

    #[test]
    fn without_a_common_folder_only_the_file_name_is_returned() {
        assert_eq!(path_to("/home/someone/cases.json", "/tmp/runs/new/r1"), "cases.json");
        assert_eq!(path_to("/", "/tmp/runs"), ".");
    }
}
