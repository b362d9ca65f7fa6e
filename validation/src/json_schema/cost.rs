//! The cost of a schema at one place of a document: how many of its parts are evaluated there, through all references.
//!
//! Such parts multiply: a schema of a kilobyte whose references double at each level is evaluated more often than any
//! machine can. The steps of the validator cannot bound all of it, since the compiler and `unevaluatedProperties` follow the
//! same references without evaluating.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;

use super::counted::{STEPS, for_each_schema};

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
