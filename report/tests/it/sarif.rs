//! What SARIF 2.1.0 asks of a log like ours: written from the standard (OASIS, section numbers below), as far as it speaks
//! of the objects and properties that are written. An object with a property that is not named here fails.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The values of `result.level` (3.27.10) and `notification.level` (3.58.6).
const LEVELS: [&str; 4] = ["none", "note", "warning", "error"];

/// Asserts that a log is one.
pub(crate) fn assert_holds(log: &Value) {
    // 3.13
    let log = object(log, &["version", "runs"], &["$schema"]);
    assert_eq!(log["version"], "2.1.0");
    assert_uri(text(&log["$schema"]));
    for one in list(&log["runs"]) {
        run(one);
    }
}

/// 3.14
fn run(run: &Value) {
    let run = object(run, &["tool"], &["automationDetails", "invocations", "columnKind", "results"]);
    // 3.18, 3.19
    let driver = object(
        &object(&run["tool"], &["driver"], &[])["driver"],
        &["name"],
        &["semanticVersion", "informationUri", "rules"],
    );
    assert!(!text(&driver["name"]).is_empty());
    assert_is_version(text(&driver["semanticVersion"]));
    assert!(is_absolute(text(&driver["informationUri"])));
    let rules: Vec<_> = list(&driver["rules"]).iter().map(rule).collect();
    // 3.49.3: no two rules have one id.
    assert_eq!(rules.iter().collect::<BTreeSet<_>>().len(), rules.len());
    // 3.17.3: a text of parts with slashes between them, the last of which names the single run and may be empty.
    let id = text(&object(&run["automationDetails"], &["id"], &[])["id"]);
    assert!(!id.starts_with('/') && id.contains('/'), "{id}");
    // 3.14.17
    assert!(["utf16CodeUnits", "unicodeCodePoints"].contains(&text(&run["columnKind"])));
    // 3.20
    for invocation in list(&run["invocations"]) {
        let invocation = object(invocation, &["executionSuccessful"], &["toolExecutionNotifications"]);
        assert!(invocation["executionSuccessful"].is_boolean());
        for notification in invocation.get("toolExecutionNotifications").map_or(&[][..], list) {
            let notification = object(notification, &["message"], &["level"]);
            assert!(LEVELS.contains(&text(&notification["level"])));
            assert_message(&notification["message"]);
        }
    }
    for found in list(&run["results"]) {
        result(found, &rules);
    }
}

/// 3.49; its id.
fn rule(rule: &Value) -> &str {
    let texts = ["shortDescription", "fullDescription", "help"];
    let rule = object(rule, &["id"], &["name", texts[0], texts[1], texts[2]]);
    let name = text(&rule["name"]);
    assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{name}");
    for name in texts {
        assert_message(&rule[name]);
    }
    text(&rule["id"])
}

/// 3.27
fn result(result: &Value, rules: &[&str]) {
    let named = ["ruleId", "ruleIndex", "level", "locations", "partialFingerprints"];
    let result = object(result, &["message"], &named);
    assert_message(&result["message"]);
    assert!(LEVELS.contains(&text(&result["level"])));
    // 3.27.6: the index leads to the rule that the id names.
    let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(rules.get(index), Some(&text(&result["ruleId"])));
    // 3.27.17: texts by names; a name that is versioned ends with `/v` and a number.
    let fingerprints = result["partialFingerprints"].as_object().unwrap();
    assert!(!fingerprints.is_empty());
    for (name, value) in fingerprints {
        assert!(!text(value).is_empty(), "{name}");
        let version = name.split_once('/').map(|(_, version)| version);
        assert!(version.is_none_or(|version| version.strip_prefix('v').is_some_and(is_digits)), "{name}");
    }
    for location in list(&result["locations"]) {
        // 3.28, 3.29: a physical location has an address of some kind.
        let location = object(location, &[], &["physicalLocation", "logicalLocations"]);
        let physical = object(&location["physicalLocation"], &["artifactLocation", "region"], &[]);
        // 3.4.3: a reference of RFC 3986; 3.4.4: without a base it leads down from where the consumer stands.
        let uri = text(&object(&physical["artifactLocation"], &["uri"], &[])["uri"]);
        assert_uri(uri);
        assert!(!uri.starts_with('/') && !uri.split('/').any(|part| part == "..") && !is_absolute(uri), "{uri}");
        // 3.30.5
        let region = object(&physical["region"], &["startLine"], &[]);
        assert!(region["startLine"].as_u64().is_some_and(|line| line >= 1));
        for logical in list(&location["logicalLocations"]) {
            // 3.33
            let logical = object(logical, &[], &["name", "fullyQualifiedName", "kind"]);
            assert!(logical.values().all(|value| !text(value).is_empty()));
        }
    }
}

/// 3.11: plain text on a line. There are no arguments, so there is no placeholder, and every brace is doubled (3.11.5); there
/// are no locations to lead to, so there is no embedded link (3.11.6).
fn assert_message(message: &Value) {
    let said = text(&object(message, &["text"], &[])["text"]);
    assert!(!said.is_empty() && !said.contains(['\n', '\r', '\0']));
    let rest = said.replace("{{", "").replace("}}", "");
    assert!(!rest.contains(['{', '}']) && !said.contains("]("), "{said}");
}

/// An object with all of the required properties and none but these and the others.
fn object<'a>(value: &'a Value, required: &[&str], others: &[&str]) -> &'a Map<String, Value> {
    let object = value.as_object().unwrap_or_else(|| panic!("not an object: {value}"));
    assert!(required.iter().all(|name| object.contains_key(*name)), "without {required:?}: {value}");
    let unknown: Vec<_> =
        object.keys().filter(|name| !required.contains(&name.as_str()) && !others.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?} in {value}");
    object
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

/// A version of semver.org: three numbers, and what may follow them.
fn assert_is_version(version: &str) {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    assert!(core.split('.').count() == 3 && core.split('.').all(is_digits), "{version}");
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Only what RFC 3986 lets stand in a reference, and two digits behind every percent sign.
fn assert_uri(uri: &str) {
    let bytes = uri.as_bytes();
    assert!(!bytes.is_empty());
    for (place, byte) in bytes.iter().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(byte);
        let digits = |digits: &[u8]| digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
        let encoded = *byte == b'%' && bytes.get(place + 1..place + 3).is_some_and(digits);
        assert!(plain || encoded, "{uri}");
    }
}

/// True where a reference begins with a scheme.
fn is_absolute(uri: &str) -> bool {
    uri.split('/').next().is_some_and(|first| first.contains(':'))
}
