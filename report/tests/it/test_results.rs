//! What the schemas of JUnit and CTRF require of files like ours: `junit-10.xsd` of Jenkins' plug-in xUnit for the whole file,
//! `surefire-test-report-3.0.xsd` of Maven for each suite, and the JSON schema of CTRF. `cargo xtask interop formats` validates
//! files with the JSON schema itself.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

use serde_json::Value;

use crate::xml::Element;

/// Asserts that an element has all of the required attributes, and others only from a list.
fn assert_attributes(element: &Element, required: &[&str], optional: &[&str]) {
    for name in required {
        assert!(element.attribute(name).is_some(), "{} without {name}", element.name);
    }
    for (name, _) in &element.attributes {
        let is_known = required.contains(&name.as_str()) || optional.contains(&name.as_str());
        assert!(is_known, "{} with {name}", element.name);
    }
}

/// Asserts that the elements in an element are those of a list, in its order.
fn assert_sequence(element: &Element, sequence: &[&str]) {
    let places = element.elements.iter().map(|child| {
        let place = sequence.iter().position(|name| *name == child.name);
        place.unwrap_or_else(|| panic!("{} in {}", child.name, element.name))
    });
    assert!(places.is_sorted(), "{:?}", element.elements);
}

/// A time of Surefire: digits, and at most three decimals.
fn assert_time(element: &Element) {
    let time = element.attribute("time").unwrap();
    let (whole, decimals) = time.split_once('.').unwrap_or((time, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    assert!(is_number(whole) && is_number(decimals) && decimals.len() <= 3, "{time}");
}

/// Asserts that a whole JUnit file is valid.
pub(crate) fn assert_junit(root: &Element) {
    assert_eq!(root.name, "testsuites");
    assert_attributes(root, &[], &["name", "time", "tests", "failures", "errors"]);
    assert_sequence(root, &["testsuite"]);
    assert_time(root);
    for suite in &root.elements {
        assert_attributes(suite, &["name", "tests", "errors", "skipped", "failures"], &["time"]);
        assert_sequence(suite, &["properties", "testcase"]);
        assert_time(suite);
        for property in suite.all("properties").flat_map(|properties| &properties.elements) {
            assert_attributes(property, &["name", "value"], &[]);
            assert!(property.elements.is_empty() && property.text.is_empty());
        }
        suite.all("testcase").for_each(assert_test);
    }
}

fn assert_test(test: &Element) {
    assert_attributes(test, &["name", "classname", "time"], &[]);
    assert_sequence(test, &["failure", "skipped", "error", "system-out"]);
    assert_time(test);
    for child in &test.elements {
        let attributes: (&[&str], &[&str]) = match child.name.as_str() {
            "failure" | "error" => (&["type"], &["message"]),
            "skipped" => (&[], &["message"]),
            _ => (&[], &[]),
        };
        assert_attributes(child, attributes.0, attributes.1);
        assert!(child.elements.is_empty());
    }
    let names: BTreeSet<_> = test.elements.iter().map(|child| &child.name).collect();
    assert_eq!(names.len(), test.elements.len(), "an element occurs twice");
}

/// Asserts that a CTRF report is valid, and returns its tests.
pub(crate) fn assert_ctrf(report: &Value) -> Vec<Value> {
    assert_keys(report, &["reportFormat", "specVersion", "results"], &["generatedBy", "runId"]);
    assert_eq!(report["reportFormat"], "CTRF");
    let results = &report["results"];
    assert_keys(results, &["tool", "summary", "tests"], &["environment"]);
    assert_keys(&results["tool"], &["name", "version"], &[]);
    assert_keys(&results["environment"], &["healthy"], &["commit"]);
    let counts = ["tests", "passed", "failed", "skipped", "pending", "other", "start", "stop"];
    assert_keys(&results["summary"], &counts, &["suites", "duration"]);
    assert!(results["summary"].as_object().unwrap().values().all(Value::is_u64));
    let tests = results["tests"].as_array().unwrap();
    for test in tests {
        let optional = ["testId", "suite", "message", "trace", "labels", "rawStatus"];
        assert_keys(test, &["name", "status", "duration"], &optional);
        assert!(test["name"] != "" && test["duration"].is_u64());
        let labels = test.get("labels").and_then(Value::as_object);
        assert!(labels.is_none_or(|labels| labels.values().all(Value::is_string)));
    }
    for status in ["passed", "failed", "skipped"] {
        let count = tests.iter().filter(|test| test["status"] == status).count();
        assert_eq!(results["summary"][status], count, "{status}");
    }
    assert_eq!(results["summary"]["tests"], tests.len());
    tests.clone()
}

fn assert_keys(value: &Value, required: &[&str], optional: &[&str]) {
    let object = value.as_object().unwrap();
    assert!(required.iter().all(|name| object.contains_key(*name)), "{required:?}: {value}");
    let unknown = object.keys().find(|key| !required.contains(&key.as_str()) && !optional.contains(&key.as_str()));
    assert_eq!(unknown, None, "{value}");
}
