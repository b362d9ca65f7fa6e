//! The limits of a schema that a walk over it finds before it is compiled: its size, the schemas that its references apply at
//! one place of a document, and its regular expressions.
//!
//! References multiply: a schema of a kilobyte whose references double at each level is evaluated more often than any machine
//! can. The steps of a check cannot bound all of it, since the compiler and `unevaluatedProperties` follow the same references
//! without reading a value.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use percent_encoding::percent_decode_str;
use regex_syntax::hir::{Hir, HirKind};
use serde_json::{Map, Value, json};

use super::budget::Budget;

/// Maximum number of schemas in a schema.
const MAX_SCHEMAS: usize = 50_000;

/// Maximum number of schemas that are evaluated at one place of a document.
const MAX_AT_ONE_PLACE: u64 = 10_000;

/// Maximum number of schemas that `unevaluatedProperties` and `unevaluatedItems` follow. Their work is the square of it.
const MAX_COLLECTED: u64 = 500;

/// Maximum number of schemas inside each other that are evaluated at one place of a document.
const MAX_NESTED_SCHEMAS: u64 = 200;

/// The cost of a schema of the drafts themselves, which a reference can name.
const META_SCHEMA: Cost = Cost { schemas: 50, nested: 10 };

/// The cost of evaluating a schema at one place of a document.
#[derive(Debug, Clone, Copy)]
struct Cost {
    schemas: u64,
    nested: u64,
}

/// Returns the maximum number of schemas inside each other at one place, or the limit that a schema exceeds. The schema has the
/// counting keyword.
pub(super) fn nested(root: &Value) -> Result<u64, String> {
    let mut walk = Walk { root, anchors: HashMap::new(), known: HashMap::new() };
    let mut schemas = Vec::new();
    for_each_schema(root, &mut |schema| schemas.push(schema));
    if schemas.len() > MAX_SCHEMAS {
        return Err(format!("the schema has more than {MAX_SCHEMAS} schemas in it"));
    }
    // Only this draft gives `id` a meaning; elsewhere it is a note of the author.
    let mut drafts = schemas.iter().filter_map(|schema| schema.get("$schema")?.as_str());
    let ids: &[&str] = if drafts.any(|draft| draft.contains("draft-04")) { &["$id", "id"] } else { &["$id"] };
    for schema in &schemas {
        for id in ids.iter().filter_map(|key| schema.get(key)?.as_str()) {
            match id.strip_prefix('#') {
                Some(anchor) => walk.anchors.entry(anchor).or_default().push(schema),
                None if std::ptr::eq(*schema, root) => {}
                // Their references have another base, and the compiler compiles their targets once for each path to them.
                None => return Err("a schema below the root has an `$id` of its own".to_owned()),
            }
        }
        for anchor in ["$anchor", "$dynamicAnchor"].iter().filter_map(|key| schema.get(key)?.as_str()) {
            walk.anchors.entry(anchor).or_default().push(schema);
        }
    }
    let mut nested = 0;
    for schema in schemas {
        let cost = walk.cost(schema, 0)?;
        nested = nested.max(cost.nested);
        let collects = ["unevaluatedProperties", "unevaluatedItems"].iter().any(|key| schema.get(key).is_some());
        if collects && cost.schemas > MAX_COLLECTED {
            let keywords = "`unevaluatedProperties` or `unevaluatedItems`";
            return Err(format!("{keywords} applies to more than {MAX_COLLECTED} schemas"));
        }
    }
    Ok(nested)
}

struct Walk<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// The known costs. `None` while the cost of the schema is computed.
    known: HashMap<*const Value, Option<Cost>>,
}

impl<'a> Walk<'a> {
    fn cost(&mut self, schema: &'a Value, depth: u64) -> Result<Cost, String> {
        let Value::Object(map) = schema else { return Ok(Cost { schemas: 1, nested: 1 }) };
        if !map.contains_key(STEPS) {
            let data = "a reference leads into `enum`, `const` or other data, or to a place that holds no schema";
            return Err(data.to_owned());
        }
        // Checked on the way down as well, since this walk has the stack of any thread.
        let too_nested =
            || format!("its references nest more than {MAX_NESTED_SCHEMAS} schemas at one place of a document");
        if depth > MAX_NESTED_SCHEMAS {
            return Err(too_nested());
        }
        match self.known.entry(std::ptr::from_ref(schema)) {
            Entry::Occupied(known) => {
                let back = "a reference leads back to itself at the same place of a document";
                return known.get().ok_or_else(|| back.to_owned());
            }
            Entry::Vacant(entry) => entry.insert(None),
        };
        let mut total = Cost { schemas: 1, nested: 0 };
        for (keyword, value) in map {
            let parts: Vec<&'a Value> = match (keyword.as_str(), value) {
                ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => list.iter().collect(),
                ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                    named.values().filter(|value| value.is_object()).collect()
                }
                ("not" | "if" | "then" | "else", schema) => vec![schema],
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    let (targets, at_least) = self.targets(reference);
                    total.include(at_least);
                    // An anchor can be there several times. Which one applies may depend on the document, so all count.
                    targets
                }
                _ => Vec::new(),
            };
            for part in parts {
                let cost = self.cost(part, depth + 1)?;
                total.include(cost);
            }
        }
        total.nested += 1;
        if total.schemas > MAX_AT_ONE_PLACE {
            return Err(format!(
                "its references apply more than {MAX_AT_ONE_PLACE} schemas at one place of a document"
            ));
        }
        if total.nested > MAX_NESTED_SCHEMAS {
            return Err(too_nested());
        }
        self.known.insert(std::ptr::from_ref(schema), Some(total));
        Ok(total)
    }

    /// Returns the schemas that a reference can mean, and the least cost of one that is not in the document.
    fn targets(&self, reference: &str) -> (Vec<&'a Value>, Cost) {
        let (base, fragment) = reference.rsplit_once('#').unwrap_or((reference, ""));
        // Nothing is fetched, so a reference with a base means the document itself, a draft, or an error of the compiler. A URI
        // can be written in many ways, so one that may be the document counts as the document.
        let root_id = self.root.get("$id").or_else(|| self.root.get("id")).and_then(Value::as_str).unwrap_or_default();
        let is_draft = base.contains("json-schema.org/draft") && !root_id.contains("json-schema.org");
        if is_draft || (root_id.is_empty() && !base.is_empty()) {
            return (Vec::new(), META_SCHEMA);
        }
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        let targets = match &*fragment {
            "" => vec![self.root],
            pointer if pointer.starts_with('/') => self.root.pointer(pointer).into_iter().collect(),
            name => self.anchors.get(name).cloned().unwrap_or_default(),
        };
        (targets, Cost { schemas: 0, nested: 0 })
    }
}

impl Cost {
    fn include(&mut self, part: Cost) {
        self.schemas = self.schemas.saturating_add(part.schemas);
        self.nested = self.nested.max(part.nested);
    }
}

/// Extra steps of a pattern that backtracks. With [`BACKTRACK_LIMIT`], a step then is at most some microseconds.
const BACKTRACKING_STEPS: u64 = 64;

/// Maximum number of backtracking steps for one match. A match that needs more is undecided.
pub(super) const BACKTRACK_LIMIT: usize = 10_000;

/// Maximum number of patterns in a schema. Compiling one takes up to half a millisecond.
const MAX_PATTERNS: usize = 10_000;

/// Maximum bytes of all compiled patterns of a schema.
const MAX_COMPILED_BYTES: usize = 64 << 20;

/// Limits of the compiled size of one pattern, in bytes. Less than the minimum would refuse honest classes of Unicode.
const MIN_PATTERN_BYTES: usize = 64 << 10;
pub(super) const MAX_PATTERN_BYTES: usize = 10 << 20;

/// Returns the weights of the patterns of a schema and the maximum compiled size of each in bytes, or the limit that they
/// exceed.
pub(super) fn patterns(schema: &Value) -> Result<(Budget, usize), String> {
    let (mut budget, mut count) = (Budget::default(), 0);
    for_each_schema(schema, &mut |part| {
        if let Some(pattern) = part.get("pattern").and_then(Value::as_str) {
            budget.text = budget.text.max(pattern_steps(pattern));
            count += 1;
        }
        let names = part.get("patternProperties").and_then(Value::as_object);
        let weights = names.into_iter().flat_map(Map::keys).map(|pattern| pattern_steps(pattern));
        budget.member = budget.member.max(weights.fold(0, u64::saturating_add));
        count += names.map_or(0, Map::len);
    });
    if count > MAX_PATTERNS {
        return Err(format!("it has more than {MAX_PATTERNS} regular expressions"));
    }
    Ok((budget, (MAX_COMPILED_BYTES / count.max(1)).clamp(MIN_PATTERN_BYTES, MAX_PATTERN_BYTES)))
}

/// Returns the steps that a match against 64 bytes of text can take.
fn pattern_steps(pattern: &str) -> u64 {
    if may_have_comments(pattern) {
        // A comment can hide the parenthesis or bracket that gives a repetition its meaning.
        return u64::MAX;
    }
    let backtracks =
        ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|around| pattern.contains(around)) || refers_back(pattern);
    let extra = if backtracks { BACKTRACKING_STEPS } else { 0 };
    // Without its cache, the engine follows each character of the pattern for each byte.
    (1 + expanded_chars(pattern) / 4).saturating_add(extra)
}

/// Whether a pattern has the flag `x` or a group that is a comment. JSON Schema has neither, but the engine accepts both, and
/// some drafts do not check patterns.
fn may_have_comments(pattern: &str) -> bool {
    pattern.split("(?").skip(1).any(|group| {
        let mut flags = group.chars().take_while(|char| char.is_ascii_alphabetic() || *char == '-');
        group.starts_with('#') || flags.any(|flag| flag == 'x')
    })
}

fn refers_back(pattern: &str) -> bool {
    pattern.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9' | b'k'))
}

/// Returns the length of a pattern with its counted repetitions written out. The work of a match is at most this for each
/// character of the text.
fn expanded_chars(pattern: &str) -> u64 {
    fn size(hir: &Hir) -> u64 {
        match hir.kind() {
            HirKind::Repetition(part) => {
                size(&part.sub).saturating_mul(u64::from(part.max.unwrap_or(part.min).max(part.min).max(1)))
            }
            HirKind::Capture(part) => size(&part.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().map(size).fold(0, u64::saturating_add),
            HirKind::Literal(text) => text.0.len() as u64,
            HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => 1,
        }
    }
    // Lookarounds and back references do not parse. Then any repetition may be inside all others.
    regex_syntax::parse(pattern).map_or_else(
        |_| {
            let counts = pattern.split('{').skip(1).map(repetitions);
            counts.fold(pattern.len() as u64, u64::saturating_mul)
        },
        |hir| size(&hir),
    )
}

/// Returns the larger number of `n}`, `n,}` or `n,m}`, or 1 for other text.
fn repetitions(text: &str) -> u64 {
    let inner = text.split_once('}').map_or("", |(inner, _)| inner);
    inner.split(',').filter_map(|number| number.trim().parse().ok()).max().unwrap_or(1).max(1)
}

/// The keyword that counts steps. The name is too odd to be in a schema by chance, and then its value is replaced.
pub(super) const STEPS: &str = "counterproof:steps";

/// Keywords whose value maps names to schemas.
const MAPS: [&str; 6] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords whose value is data, which may look like a schema.
const DATA: [&str; 6] = ["enum", "const", "default", "examples", "$vocabulary", "dependentRequired"];

/// Calls `visit` for a schema and for all schemas in it.
fn for_each_schema<'a>(schema: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    let Value::Object(map) = schema else { return };
    visit(schema);
    for (keyword, value) in map {
        match value {
            _ if DATA.contains(&keyword.as_str()) => {}
            Value::Object(named) if MAPS.contains(&keyword.as_str()) => {
                named.values().for_each(|schema| for_each_schema(schema, visit));
            }
            Value::Array(list) => list.iter().for_each(|schema| for_each_schema(schema, visit)),
            other => for_each_schema(other, visit),
        }
    }
}

/// Keywords whose value is a schema for the same value.
const CONDITIONS: [&str; 4] = ["not", "if", "then", "else"];

/// Adds the counting keyword to a schema and to all schemas in it.
pub(super) fn add_steps(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for (keyword, value) in map.iter_mut() {
        match (keyword.as_str(), value) {
            (keyword, _) if DATA.contains(&keyword) => {}
            (keyword, Value::Object(named)) if MAPS.contains(&keyword) => {
                // The report names a property that must not be there, so these stay as they are.
                let keep_false = matches!(keyword, "properties" | "patternProperties");
                for schema in named.values_mut().filter(|schema| !(keep_false && **schema == Value::Bool(false))) {
                    add_steps_to_any(schema);
                }
            }
            (_, Value::Array(list)) => list.iter_mut().for_each(add_steps_to_any),
            (keyword, value) if CONDITIONS.contains(&keyword) => add_steps_to_any(value),
            // Unknown keywords too: a reference can point into them.
            (_, value) => add_steps(value),
        }
    }
    map.insert(STEPS.to_owned(), Value::Bool(true));
}

/// Adds the counting keyword to a schema that may be a boolean. References can multiply these too.
fn add_steps_to_any(schema: &mut Value) {
    match schema {
        Value::Bool(true) => *schema = json!({}),
        Value::Bool(false) => *schema = json!({"not": {}}),
        _ => {}
    }
    add_steps(schema);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply_the_groups_that_they_repeat() {
        assert_eq!(expanded_chars("abc"), 3);
        assert!((100..110).contains(&expanded_chars("a{100}")));
        assert!(expanded_chars("(a{100}b){100}") > 10_000);
        assert!(expanded_chars("((a{1000}){1000}){1000}") >= 1_000_000_000);
        assert!(expanded_chars("(?!x)((a{1000}){1000}){1000}") >= 1_000_000_000, "does not parse");
        assert!(expanded_chars("^[0-9]{4}-[0-9]{2}-[0-9]{2}$") < 64);
        assert_eq!(expanded_chars(r"[(a{1000})\]{9}]b[\[{5}]c"), 4, "classes");
        assert!(expanded_chars("[ab]{1000}") >= 1000);
        assert!(expanded_chars(r")(}{\") < 8, "invalid patterns do not matter, but must not panic");
    }

    #[test]
    fn patterns_with_comments_cost_more_than_any_budget() {
        for pattern in ["(?x)a", "(?i-x)a", "(?sx:a)", "(?#b)a"] {
            assert_eq!(pattern_steps(pattern), u64::MAX, "{pattern}");
        }
        for pattern in ["(?<x>a)", "(?:x)", "(?=x)", "(?P<x>a)", "(?i)x"] {
            assert!(pattern_steps(pattern) < 100, "{pattern}");
        }
    }

    #[test]
    fn patterns_that_backtrack_cost_more() {
        assert!(pattern_steps("^(?!x)a") > BACKTRACKING_STEPS);
        assert!(pattern_steps(r"^(a)\1$") > BACKTRACKING_STEPS);
        assert!(pattern_steps("^[a-z]+$") < 8);
    }
}
