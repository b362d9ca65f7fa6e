//! What has changed since a run was started: its cases, and the settings on which its artifacts depend.

use std::fmt;

use counterproof_artifact::Run;
use serde_json::Value;

/// Fields of `run.json` that say when, where, how fast and with what luck, but not what is asked and what is kept: a run
/// may go on with others. Every other field matters, those of later versions too.
const DO_NOT_MATTER: [&str; 20] = [
    "run_id",
    "generated_at",
    "cases_path",
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
    "resumes",
    "group_id",
    "repeat",
    "repeats",
    // The cases are told apart one by one.
    "selected_case_ids",
    "case_digests",
];

/// Changes that are named; the rest is counted.
const NAMED: usize = 10;

/// What is different, in words; none means that a run can go on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes(Vec<String>);

impl Changes {
    /// True where nothing is different.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.0.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
        f.write_str(&named)?;
        match self.0.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// Holds the document that a run would start with now against the one that it was started with.
pub(crate) fn changes(started: &Run, now: &Run) -> Changes {
    let mut found = Vec::new();
    match (&started.case_digests, &now.case_digests) {
        (Some(before), Some(after)) => {
            for (case, digest) in after {
                match before.get(case) {
                    None => found.push(format!("the case `{case}` is new")),
                    Some(known) if known != digest => found.push(format!("the case `{case}` asks something else")),
                    Some(_) => {}
                }
            }
            let gone = before.keys().filter(|case| !after.contains_key(*case));
            found.extend(gone.map(|case| format!("the case `{case}` is gone")));
        }
        _ => found.push("its run.json does not say what its cases asked".to_owned()),
    }
    let (before, after) = (fields(started), fields(now));
    let cases_differ = !found.is_empty();
    let mut names: Vec<&String> = after.keys().collect();
    names.extend(before.keys().filter(|name| !after.contains_key(*name)));
    for name in names {
        // The digest over all cases and the shard's positions follow from the cases: named once is enough.
        if !DO_NOT_MATTER.contains(&name.as_str()) && !(cases_differ && (name == "cases_digest" || name == "shard")) {
            let value = |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
            differences(name, &value(&before), &value(&after), &mut found);
        }
    }
    Changes(found)
}

/// What two runs that should be parts of one have in different ways. Their cases are their own, but the cases that all
/// parts have together are not, and neither is the commit.
pub(crate) fn differing_settings(one: &Run, other: &Run) -> Changes {
    let (mut one, mut other) = (fields(one), fields(other));
    let mut found = Vec::new();
    let all = ["version", "cases_digest", "shard", "group_id", "repeat", "repeats"];
    for fields in [&mut one, &mut other] {
        if let Some(Value::Object(shard)) = fields.get_mut("shard") {
            shard.retain(|name, _| ["run_id", "count", "cases_total"].contains(&name.as_str()));
        }
    }
    let known = one.get("repo_commit").is_some() && other.get("repo_commit").is_some();
    let mut names: Vec<&String> = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))).collect();
    names.retain(|name| {
        all.contains(&name.as_str()) || !DO_NOT_MATTER.contains(&name.as_str()) || (known && *name == "repo_commit")
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

fn differences(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
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
    let (before, after) = (before.to_string(), after.to_string());
    // Lists of numbers say nothing to anybody.
    if before.len().max(after.len()) > 120 || path.starts_with("cases_digest") {
        found.push(format!("`{path}` differs"));
    } else {
        found.push(format!("`{path}` was {before} and is {after}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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

    fn told(change: impl FnOnce(&mut Value)) -> String {
        changes(&run(|_| {}), &run(change)).to_string()
    }

    #[test]
    fn what_does_not_matter_may_change() {
        assert_eq!(told(|_| {}), "");
        let change = |run: &mut Value| {
            run["concurrency"] = json!(64);
            run["repo_commit"] = json!("abc");
            run["stats"] = json!({"cases_total": 2});
            run["cases_path"] = json!("moved/c.json");
        };
        assert_eq!(told(change), "");
    }

    #[test]
    fn each_change_is_named() {
        let change = |run: &mut Value| {
            run["case_digests"] = json!({"a": "1".repeat(64), "c": "0".repeat(64)});
            run["cases_digest"] = json!("1".repeat(64));
            run["timeout_ms"] = json!(1000);
            run["limits"]["max_body_bytes"] = json!(20);
            run["protocol"] = json!("openai-chat");
        };
        let expected = "the case `a` asks something else; the case `c` is new; the case `b` is gone; \
            `timeout_ms` was 15000 and is 1000; `limits.max_body_bytes` was 10 and is 20; \
            `protocol` was null and is \"openai-chat\"";
        assert_eq!(told(change), expected);
    }
}
