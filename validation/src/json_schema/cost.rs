//! The cost of a schema at one place of a document: how many of its parts are evaluated there, through all references.
//!
//! Such parts multiply: a schema of a kilobyte whose references double at each level is evaluated more often than any
//! machine can. The steps of the validator cannot bound all of it, since the compiler and `unevaluatedProperties` follow the
//! same references without evaluating.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::{Map, Value};

/// Maximum number of schemas in a schema.
const MAX_SCHEMAS: usize = 50_000;

/// Maximum number of schemas that are evaluated at one place of a document.
const MAX_AT_ONE_PLACE: u64 = 10_000;

/// Maximum number of schemas that `unevaluatedProperties` and `unevaluatedItems` follow. Their work is the square of it.
const MAX_COLLECTED: u64 = 500;

/// Maximum number of schemas inside each other that are evaluated at one place of a document.
const MAX_NESTED_SCHEMAS: u64 = 200;

/// Maximum number of schemas with an `$id` of their own, below the root. The compiler compiles what they refer to once for
/// each path to it.
const MAX_EMBEDDED: usize = 8;

/// The cost of a schema of the drafts themselves, which a reference can name.
const META_SCHEMA: Cost = Cost { schemas: 50, nested: 10 };

/// The reason why a schema is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooCostly {
    #[error("the schema has more than {MAX_SCHEMAS} schemas in it")]
    Schemas,
    #[error("its references apply more than {MAX_AT_ONE_PLACE} schemas at one place of a document")]
    AtOnePlace,
    #[error("`unevaluatedProperties` or `unevaluatedItems` applies to more than {MAX_COLLECTED} schemas")]
    Unevaluated,
    #[error("its references nest more than {MAX_NESTED_SCHEMAS} schemas at one place of a document")]
    Nested,
    #[error("a reference leads back to itself at the same place of a document")]
    Cycle,
    #[error("a reference leads into `enum`, `const` or other data, or to a place that holds no schema")]
    Data,
    #[error("more than {MAX_EMBEDDED} schemas in it have an `$id` of their own")]
    Embedded,
    #[error("its regular expressions are too large")]
    Patterns,
    #[error("no thread could be started for it")]
    NoThread,
}

/// The cost of evaluating a schema at one place of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    schemas: u64,
    nested: u64,
}

/// Rejects a schema that is too expensive, and returns the maximum number of schemas inside each other at one place. The
/// schema has the counting keyword.
pub(super) fn nested(root: &Value) -> Result<u64, TooCostly> {
    let mut walk = Walk::new(root)?;
    let mut nested = 0;
    for schema in std::mem::take(&mut walk.schemas) {
        let cost = walk.cost(schema, 0)?;
        nested = nested.max(cost.nested);
        let collects = ["unevaluatedProperties", "unevaluatedItems"].iter().any(|key| schema.get(key).is_some());
        if collects && cost.schemas > MAX_COLLECTED {
            return Err(TooCostly::Unevaluated);
        }
    }
    Ok(nested)
}

struct Walk<'a> {
    schemas: Vec<&'a Value>,
    /// The root, and the schemas with an `$id` of their own.
    resources: Vec<&'a Value>,
    /// The resource of each schema.
    resource_of: HashMap<*const Value, &'a Value>,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// The known costs. `None` while the cost of the schema is computed.
    known: HashMap<*const Value, Option<Cost>>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Value) -> Result<Self, TooCostly> {
        let (mut schemas, mut resources, mut anchors) = (Vec::new(), vec![root], HashMap::<_, Vec<_>>::new());
        for_each_schema(root, &mut |schema| {
            schemas.push(schema);
            if !std::ptr::eq(schema, root) && has_own_id(schema) {
                resources.push(schema);
            }
            for keyword in ["$anchor", "$dynamicAnchor", "$id", "id"] {
                if let Some(name) = schema.get(keyword).and_then(Value::as_str) {
                    anchors.entry(name.strip_prefix('#').unwrap_or(name)).or_default().push(schema);
                }
            }
        });
        if schemas.len() > MAX_SCHEMAS {
            return Err(TooCostly::Schemas);
        }
        if resources.len() > MAX_EMBEDDED + 1 {
            return Err(TooCostly::Embedded);
        }
        let mut resource_of = HashMap::new();
        for &resource in &resources {
            // In the order of the document, so that the innermost resource is the last.
            for_each_schema(resource, &mut |schema| {
                resource_of.insert(std::ptr::from_ref(schema), resource);
            });
        }
        Ok(Self { schemas, resources, resource_of, anchors, known: HashMap::new() })
    }

    fn cost(&mut self, schema: &'a Value, depth: u64) -> Result<Cost, TooCostly> {
        let Value::Object(map) = schema else { return Ok(Cost { schemas: 1, nested: 1 }) };
        if !map.contains_key(STEPS) {
            return Err(TooCostly::Data);
        }
        if depth > MAX_NESTED_SCHEMAS {
            return Err(TooCostly::Nested);
        }
        match self.known.entry(std::ptr::from_ref(schema)) {
            Entry::Occupied(known) => return known.get().ok_or(TooCostly::Cycle),
            Entry::Vacant(entry) => entry.insert(None),
        };
        let mut total = Cost { schemas: 1, nested: 0 };
        for (keyword, value) in map {
            match (keyword.as_str(), value) {
                ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => {
                    list.iter().try_for_each(|schema| self.add(&mut total, schema, depth))?;
                }
                ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                    let schemas = named.values().filter(|value| value.is_object());
                    schemas.into_iter().try_for_each(|schema| self.add(&mut total, schema, depth))?;
                }
                ("not" | "if" | "then" | "else", schema) => self.add(&mut total, schema, depth)?,
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    let cost = self.reference_cost(schema, keyword, reference, depth)?;
                    total.include(cost);
                }
                _ => {}
            }
        }
        total.nested += 1;
        if total.schemas > MAX_AT_ONE_PLACE {
            return Err(TooCostly::AtOnePlace);
        }
        if total.nested > MAX_NESTED_SCHEMAS {
            return Err(TooCostly::Nested);
        }
        self.known.insert(std::ptr::from_ref(schema), Some(total));
        Ok(total)
    }

    fn add(&mut self, total: &mut Cost, schema: &'a Value, depth: u64) -> Result<(), TooCostly> {
        let cost = self.cost(schema, depth + 1)?;
        total.include(cost);
        Ok(())
    }

    /// Returns the maximum over all schemas that the reference can mean.
    fn reference_cost(
        &mut self,
        from: &'a Value,
        keyword: &str,
        reference: &str,
        depth: u64,
    ) -> Result<Cost, TooCostly> {
        let (base, fragment) = reference.rsplit_once('#').unwrap_or((reference, ""));
        let fragment = decoded(fragment);
        let resources = match base {
            "" => self.resource_of.get(&std::ptr::from_ref(from)).copied().into_iter().collect(),
            base => self.resources_named(base),
        };
        let mut targets: Vec<&'a Value> = match fragment.as_str() {
            "" => resources,
            pointer if pointer.starts_with('/') => {
                resources.into_iter().filter_map(|resource| resource.pointer(pointer)).collect()
            }
            // Dynamic anchors can have the same name in several resources.
            name => self.anchors.get(name).cloned().unwrap_or_default(),
        };
        if keyword == "$recursiveRef" {
            let is_anchor = |schema: &&Value| schema.get("$recursiveAnchor") == Some(&Value::Bool(true));
            targets.extend(self.resources.iter().filter(|schema| is_anchor(schema)));
        }
        // The compiler reports a reference without a target.
        let mut most = if base.is_empty() { Cost { schemas: 1, nested: 1 } } else { META_SCHEMA };
        for target in targets {
            let cost = self.cost(target, depth + 1)?;
            most = Cost { schemas: most.schemas.max(cost.schemas), nested: most.nested.max(cost.nested) };
        }
        Ok(most)
    }

    /// Returns the resources that a URI can mean. Only the last parts of the URIs are compared, since the rest depends on
    /// where a resource is; if none is equal, it can be any.
    fn resources_named(&self, base: &str) -> Vec<&'a Value> {
        let last = |uri: &str| uri.trim_end_matches('#').rsplit('/').next().unwrap_or_default().to_owned();
        let ids = |schema: &Value| ["$id", "id"].iter().filter_map(|key| schema.get(key)?.as_str().map(last)).collect();
        let wanted = last(base);
        let named = self.resources.iter().filter(|schema| {
            let ids: Vec<String> = ids(schema);
            ids.contains(&wanted)
        });
        let named: Vec<_> = named.copied().collect();
        // Without any `$id`, a URI means a schema of the drafts, or nothing.
        let has_id = |schema: &&Value| schema.get("$id").or_else(|| schema.get("id")).is_some_and(Value::is_string);
        match named.is_empty() {
            true if base.contains("json-schema.org/draft") && !self.mentions_drafts() => Vec::new(),
            true => self.resources.iter().filter(|schema| has_id(schema)).copied().collect(),
            false => named,
        }
    }

    /// Whether an `$id` is in the name space of the drafts.
    fn mentions_drafts(&self) -> bool {
        let ids = self.resources.iter().filter_map(|schema| schema.get("$id").or_else(|| schema.get("id")));
        ids.filter_map(Value::as_str).any(|id| id.contains("json-schema.org"))
    }
}

impl Cost {
    fn include(&mut self, part: Cost) {
        self.schemas = self.schemas.saturating_add(part.schemas);
        self.nested = self.nested.max(part.nested);
    }
}

/// Whether a schema is a resource of its own. An `$id` that is only a fragment is an anchor.
fn has_own_id(schema: &Value) -> bool {
    let ids = ["$id", "id"].iter().filter_map(|keyword| schema.get(keyword)?.as_str());
    ids.into_iter().any(|id| !id.starts_with('#'))
}

/// Decodes the percent-encoding of a fragment.
fn decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Extra steps of a pattern that backtracks. With [`BACKTRACK_LIMIT`], a step then is at most some microseconds.
const BACKTRACKING_STEPS: u64 = 64;

/// Maximum number of backtracking steps for one match. A match that needs more is undecided.
pub(super) const BACKTRACK_LIMIT: usize = 10_000;

/// Maximum bytes of all compiled patterns of a schema.
const MAX_COMPILED_BYTES: usize = 64 << 20;

/// Limits of the compiled size of one pattern, in bytes.
const COMPILED_BYTES: (usize, usize) = (64 << 10, 10 << 20);

/// Maximum compiled bytes of one pattern if a schema has only this one.
pub(super) const MAX_PATTERN_BYTES: usize = COMPILED_BYTES.1;

/// Returns the maximum compiled size of each pattern of a schema, in bytes.
pub(super) fn pattern_size_limit(schema: &Value) -> usize {
    let mut patterns = 0;
    for_each_schema(schema, &mut |part| {
        patterns += usize::from(part.get("pattern").is_some());
        patterns += part.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
    });
    (MAX_COMPILED_BYTES / patterns.max(1)).clamp(COMPILED_BYTES.0, COMPILED_BYTES.1)
}

/// Returns the steps that a match against 64 bytes of text can take.
pub(super) fn pattern_steps(pattern: &str) -> u64 {
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
    /// The length of a group so far, and of its last atom, which a repetition multiplies.
    #[derive(Default)]
    struct Group {
        length: u64,
        atom: u64,
    }
    let (mut group, mut outer) = (Group::default(), Vec::new());
    let mut chars = pattern.char_indices();
    while let Some((at, char)) = chars.next() {
        let atom = match char {
            '(' => {
                outer.push(std::mem::take(&mut group));
                continue;
            }
            ')' => {
                let closed = std::mem::replace(&mut group, outer.pop().unwrap_or_default());
                closed.length.max(1)
            }
            '{' => group.atom.saturating_mul(repetitions(&pattern[at..])),
            // Braces and parentheses have no meaning in a class.
            '[' => {
                while let Some((_, inner)) = chars.next() {
                    match inner {
                        ']' => break,
                        '\\' => _ = chars.next(),
                        _ => {}
                    }
                }
                1
            }
            '\\' => {
                chars.next();
                1
            }
            _ => 1,
        };
        group.length = group.length.saturating_add(atom);
        group.atom = atom;
    }
    outer.into_iter().fold(group.length, |sum, group| sum.saturating_add(group.length))
}

/// Returns the larger number of `{n}`, `{n,}` or `{n,m}`, or 1 for other text.
fn repetitions(text: &str) -> u64 {
    let inner = text.strip_prefix('{').and_then(|text| text.split_once('}')).map_or("", |(inner, _)| inner);
    inner.split(',').filter_map(|number| number.trim().parse().ok()).max().unwrap_or(1)
}

/// The keyword that counts steps. The name is too odd to be in a schema by chance, and then its value is replaced.
pub(super) const STEPS: &str = "counterproof:steps";

/// Keywords whose value maps names to schemas.
pub(super) const MAPS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords whose value is data, which may look like a schema.
pub(super) const DATA: [&str; 6] = ["enum", "const", "default", "examples", "$vocabulary", "dependentRequired"];

/// Calls `visit` for a schema and for all schemas in it.
pub(super) fn for_each_schema<'a>(schema: &'a Value, visit: &mut impl FnMut(&'a Value)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply_the_groups_that_they_repeat() {
        assert_eq!(expanded_chars("abc"), 3);
        assert!((100..110).contains(&expanded_chars("a{100}")));
        assert!(expanded_chars("(a{100}b){100}") > 10_000);
        assert!(expanded_chars("((a{1000}){1000}){1000}") > 1_000_000_000);
        assert!(expanded_chars("^[0-9]{4}-[0-9]{2}-[0-9]{2}$") < 64);
        assert_eq!(expanded_chars(r"[(a{1000})\]{9}]b[[{5}]c"), 4, "classes");
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
