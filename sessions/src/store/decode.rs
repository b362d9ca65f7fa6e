//! Records in the form in which they are printed: references are replaced by the values that they name.

use std::collections::HashMap;

use counterproof_ledger::query::Fields;
use counterproof_ledger::store::{EventStore, Query, StoreError};
use serde_json::Value;

use super::stored::{ASSET, HISTORY, LITERAL};

/// Assets that are asked for with one statement.
const AT_ONCE: usize = 64;

/// Nodes of a history that are read with one statement.
const NODES_AT_ONCE: usize = 1024;

/// Deepest nesting of references. The encoder nests them three deep.
const MAX_DEPTH: usize = 8;

/// Bytes of texts that are kept for the next record, which repeats most of them.
const CACHED_BYTES: usize = 64 << 20;

/// Reads the records of one session, in the order of their numbers.
pub(super) struct Decoder<'a> {
    store: &'a mut dyn EventStore,
    session_id: String,
    assets: HashMap<String, Value>,
    cached_bytes: usize,
    /// The parent and the message of each node.
    nodes: HashMap<String, (Option<String>, String)>,
    last_node: Option<String>,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(store: &'a mut dyn EventStore, session_id: &str) -> Self {
        let (assets, nodes) = (HashMap::new(), HashMap::new());
        Self { store, session_id: session_id.to_owned(), assets, cached_bytes: 0, nodes, last_node: None }
    }

    pub(super) fn store(&mut self) -> &mut dyn EventStore {
        self.store
    }

    pub(super) fn decode(&mut self, seq: u64, data: &str) -> Result<Value, StoreError> {
        // What another program has written may not be JSON. It is shown as a text.
        let event = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_owned()));
        let mut event = self.decode_value(event)?;
        if let Some(fields) = event.as_object_mut() {
            fields.insert("seq".to_owned(), seq.into());
        }
        Ok(event)
    }

    /// Replaces the references of a part of a record.
    pub(super) fn decode_value(&mut self, mut event: Value) -> Result<Value, StoreError> {
        let mut digests = Vec::new();
        let mut histories = HashMap::new();
        find_references(&event, &mut digests, &mut histories);
        for (node, messages) in &mut histories {
            *messages = self.history(node)?;
            digests.extend(messages.iter().cloned());
        }
        self.load(digests)?;
        for _ in 0..MAX_DEPTH {
            let mut nested = Vec::new();
            self.resolve(&mut event, &histories, &mut nested);
            if nested.is_empty() {
                break;
            }
            self.load(nested)?;
        }
        unwrap_literals(&mut event);
        Ok(event)
    }

    /// Replaces the references whose values are known, and lists those within them.
    fn resolve(&self, value: &mut Value, histories: &HashMap<String, Vec<String>>, nested: &mut Vec<String>) {
        match reference(value) {
            Some(Reference::Asset(digest)) => {
                let mut found = self.asset(digest);
                find_references(&found, nested, &mut HashMap::new());
                std::mem::swap(value, &mut found);
            }
            Some(Reference::History(node)) => {
                let messages = node.and_then(|node| histories.get(node)).map(Vec::as_slice).unwrap_or_default();
                *value = messages.iter().map(|digest| self.asset(digest)).collect();
            }
            None => match value {
                Value::Array(items) => items.iter_mut().for_each(|item| self.resolve(item, histories, nested)),
                Value::Object(fields) if fields.len() == 1 && fields.contains_key(LITERAL) => {
                    // The object within has a key of a reference, and values that may be references.
                    if let Some(Value::Object(fields)) = fields.get_mut(LITERAL) {
                        fields.values_mut().for_each(|field| self.resolve(field, histories, nested));
                    }
                }
                Value::Object(fields) => fields.values_mut().for_each(|field| self.resolve(field, histories, nested)),
                _ => {}
            },
        }
    }

    fn asset(&self, digest: &str) -> Value {
        let missing = || Value::String(format!("[missing: the ledger has no asset {digest}]"));
        self.assets.get(digest).cloned().unwrap_or_else(missing)
    }

    fn load(&mut self, mut digests: Vec<String>) -> Result<(), StoreError> {
        digests.retain(|digest| !self.assets.contains_key(digest));
        digests.sort_unstable();
        digests.dedup();
        for chunk in digests.chunks(AT_ONCE) {
            let mut query = Query::new("SELECT digest, text FROM session_assets WHERE digest IN (");
            for (number, digest) in chunk.iter().enumerate() {
                let place = query.bind(digest.as_str());
                query.push(if number == 0 { "" } else { ", " });
                query.push(&place);
            }
            query.push(")");
            for row in self.store.select(&query)? {
                let mut fields = Fields::new(row);
                let (digest, text) = (fields.required(), fields.required());
                self.cached_bytes += text.len();
                let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
                self.assets.insert(digest, value);
            }
        }
        Ok(())
    }

    /// Drops what was read, if it is large.
    pub(super) fn trim(&mut self) {
        if self.cached_bytes > CACHED_BYTES {
            self.assets.clear();
            self.nodes.clear();
            self.last_node = None;
            self.cached_bytes = 0;
        }
    }

    /// Returns the digests of the messages of a history, the first one first.
    fn history(&mut self, node: &str) -> Result<Vec<String>, StoreError> {
        let mut messages = Vec::new();
        let mut next = Some(node.to_owned());
        while let Some(node) = next {
            if !self.nodes.contains_key(&node) {
                self.load_nodes(&node)?;
            }
            let Some((parent, message)) = self.nodes.get(&node) else { break };
            messages.push(message.clone());
            // A list without an end exists only in a damaged database.
            next = parent.clone().filter(|_| messages.len() <= self.nodes.len());
        }
        messages.reverse();
        self.last_node = Some(node.to_owned());
        Ok(messages)
    }

    fn load_nodes(&mut self, node: &str) -> Result<(), StoreError> {
        // Up to the last history, which is nearly always the start of this one.
        let last = self.last_node.clone().unwrap_or_default();
        let query = Query::new(
            "WITH RECURSIVE walk (node, parent, message, depth) AS (\
             SELECT node, parent, message, 0 FROM session_history WHERE session_id = ?1 AND node = ?2 \
             UNION ALL SELECT h.node, h.parent, h.message, walk.depth + 1 FROM walk \
             JOIN session_history AS h ON h.session_id = ?1 AND h.node = walk.parent \
             WHERE walk.depth < CAST(?3 AS BIGINT) AND walk.parent <> ?4) SELECT node, parent, message FROM walk",
        );
        let query = query.with(self.session_id.as_str()).with(node).with(NODES_AT_ONCE as u64).with(last);
        for row in self.store.select(&query)? {
            let mut fields = Fields::new(row);
            let (node, parent, message) = (fields.required(), fields.text(), fields.required());
            self.nodes.insert(node, (parent, message));
        }
        Ok(())
    }
}

enum Reference<'a> {
    Asset(&'a str),
    /// The last node; `None` for an empty list.
    History(Option<&'a str>),
}

fn reference(value: &Value) -> Option<Reference<'_>> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    let (name, value) = fields.iter().next()?;
    match (name.as_str(), value) {
        (ASSET, Value::String(digest)) => Some(Reference::Asset(digest)),
        (HISTORY, Value::String(node)) => Some(Reference::History(Some(node))),
        (HISTORY, Value::Null) => Some(Reference::History(None)),
        _ => None,
    }
}

fn find_references(value: &Value, assets: &mut Vec<String>, histories: &mut HashMap<String, Vec<String>>) {
    match reference(value) {
        Some(Reference::Asset(digest)) => assets.push(digest.to_owned()),
        Some(Reference::History(node)) => drop(node.map(|node| histories.insert(node.to_owned(), Vec::new()))),
        None => match value {
            Value::Array(items) => items.iter().for_each(|item| find_references(item, assets, histories)),
            Value::Object(fields) => {
                let fields = match fields.get(LITERAL) {
                    Some(Value::Object(inner)) if fields.len() == 1 => inner,
                    _ => fields,
                };
                fields.values().for_each(|field| find_references(field, assets, histories));
            }
            _ => {}
        },
    }
}

/// Returns the objects that the encoder wrapped.
fn unwrap_literals(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(unwrap_literals),
        Value::Object(fields) => {
            if fields.len() == 1
                && let Some(Value::Object(inner)) = fields.get_mut(LITERAL)
            {
                let mut inner = Value::Object(std::mem::take(inner));
                if let Value::Object(fields) = &mut inner {
                    fields.values_mut().for_each(unwrap_literals);
                }
                *value = inner;
            } else {
                fields.values_mut().for_each(unwrap_literals);
            }
        }
        _ => {}
    }
}
