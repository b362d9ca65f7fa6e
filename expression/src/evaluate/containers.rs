//! Lists and objects: their fields and elements, literals, and macros, which iterate over them.

use super::evaluation::Evaluation;
use crate::budget::{Evaluated, Stop, failed};
use crate::node::{Loop, LoopKind, LoopVariables, Node};
use crate::values::{Entries, Key, Number, Object, Value, shortened};

impl<'j> Evaluation<'j> {
    pub(super) fn field(&mut self, of: &'j Node, name: &'j str) -> Evaluated<'j> {
        match self.value(of)? {
            Value::Map(map) => {
                // Comparing names takes time that grows with their length, whoever wrote them.
                self.budget.read(name.len())?;
                map.field(name).map_or_else(|| failed(format!("missing field `{name}`")), Ok)
            }
            other => failed(format!("cannot read field `{name}` of {}", other.describe())),
        }
    }

    /// A value that is not an object has no fields, which is not an error.
    pub(super) fn has(&mut self, of: &'j Node, name: &'j str) -> Evaluated<'j> {
        // As in `field`, so that a test costs as much as the read that it guards.
        self.budget.read(name.len())?;
        let value = self.value(of)?;
        Ok(Value::Bool(matches!(value, Value::Map(map) if map.field(name).is_some())))
    }

    pub(super) fn item(&mut self, of: &'j Node, at: &'j Node) -> Evaluated<'j> {
        let of = self.value(of)?;
        // Both are evaluated before the types are looked at: the first failure in the text is reported.
        let at = self.value(at)?;
        match of {
            Value::List(list) => {
                // `1.0` is an index as well: JSON does not tell it from `1`.
                let Some(index) = at.number().and_then(Number::to_whole) else {
                    return failed(format!("{} cannot be an index of a list", describe_index(&at)));
                };
                // A negative index is out of range, and does not count from the end.
                let found = usize::try_from(index).ok().and_then(|index| list.get(index));
                found.map_or_else(|| failed(format!("index {index} is out of range for a list of {}", list.len())), Ok)
            }
            Value::Map(map) => self.get_key(&map, &at),
            other => failed(format!("{} cannot be an index of {}", at.describe(), other.describe())),
        }
    }

    fn get_key(&mut self, map: &Object<'j>, at: &Value<'j>) -> Evaluated<'j> {
        let name = match at {
            Value::String(text) => {
                self.budget.read(text.as_str().len())?;
                shortened(text.as_str())
            }
            Value::Bool(value) => value.to_string(),
            other => match other.number() {
                Some(number) => number.to_double().to_string(),
                None => return failed(format!("{} cannot be an index of an object", other.describe())),
            },
        };
        let found = Key::of(at).and_then(|key| map.get(&key));
        found.map_or_else(|| failed(format!("missing field `{name}`")), Ok)
    }
}

fn describe_index(at: &Value<'_>) -> &'static str {
    if at.number().is_some() { "a number with a fraction" } else { at.describe() }
}

impl<'j> Evaluation<'j> {
    pub(super) fn list(&mut self, elements: &'j [Node]) -> Evaluated<'j> {
        // Charged before the allocation, as all memory is.
        self.budget.create_list(elements.len())?;
        let mut list = Vec::with_capacity(elements.len());
        for element in elements {
            list.push(self.value(element)?);
        }
        Ok(Value::list(list))
    }

    pub(super) fn map(&mut self, entries: &'j [(Node, Node)]) -> Evaluated<'j> {
        let mut made = Entries::default();
        for (key, value) in entries {
            let (key, value) = (self.value(key)?, self.value(value)?);
            self.insert(&mut made, key, value)?;
        }
        self.budget.create_map(0)?;
        Ok(Value::map(made))
    }

    /// Adds an entry to a map that is being computed.
    pub(super) fn insert(&mut self, map: &mut Entries<'j>, key: Value<'j>, value: Value<'j>) -> Result<(), Stop> {
        self.budget.create_map(1)?;
        if let Value::String(text) = &key {
            self.budget.read(text.as_str().len())?;
        }
        // CEL has no doubles as keys of a map that is written out, but looks them up.
        let normalized = match &key {
            Value::Double(_) => None,
            key => Key::of(key),
        };
        let Some(normalized) = normalized else {
            return failed(format!("a key is a string, an integer or a boolean, not {}", key.describe()));
        };
        let name = match &normalized {
            Key::String(text) => shortened(text.as_str()),
            Key::Bool(value) => value.to_string(),
            Key::Int(value) => value.to_string(),
            Key::Uint(value) => value.to_string(),
        };
        if map.insert(key, normalized, value) { Ok(()) } else { failed(format!("duplicate key `{name}`")) }
    }
}

/// One round of a loop: the index and the element of a list, or the key and the value of a map.
type Round<'j> = (Value<'j>, Value<'j>);

impl<'j> Evaluation<'j> {
    pub(super) fn loop_value(&mut self, body: &'j Loop) -> Evaluated<'j> {
        match self.value(&body.range)? {
            Value::List(list) => {
                let rounds = list.iter().enumerate().map(|(index, element)| (Value::count(index), element));
                self.rounds(body, rounds)
            }
            Value::Map(map) if body.variables == LoopVariables::One => {
                // One variable is the key of a map, and the element of a list: the second part of a round.
                self.rounds(body, map.iter().map(|(key, _)| (Value::Null, key)))
            }
            Value::Map(map) => self.rounds(body, map.iter()),
            other => {
                let message = format!("cannot iterate over {}", other.describe());
                Err(Stop::Failed { message, span: Some(body.range.span.clone()) })
            }
        }
    }

    fn rounds(&mut self, body: &'j Loop, rounds: impl Iterator<Item = Round<'j>>) -> Evaluated<'j> {
        match body.kind {
            LoopKind::All => self.quantified(body, rounds, false),
            LoopKind::Exists => self.quantified(body, rounds, true),
            LoopKind::ExistsOne => {
                let mut count = 0_usize;
                for round in rounds {
                    // A failure of any element is a failure of the macro: without it the number is unknown.
                    count += usize::from(self.condition(body, &body.body, round)?);
                }
                Ok(Value::Bool(count == 1))
            }
            LoopKind::Filter => {
                let mut selected = Vec::new();
                for round in rounds {
                    // Cloned before the condition takes the round. Values are cheap to clone.
                    let element = round.1.clone();
                    if self.condition(body, &body.body, round)? {
                        self.budget.create_element()?;
                        selected.push(element);
                    }
                }
                Ok(Value::list(selected))
            }
            LoopKind::List => {
                let mut mapped = Vec::new();
                for round in rounds {
                    if self.is_selected(body, &round)? {
                        self.budget.create_element()?;
                        mapped.push(self.round(body, &body.body, round)?);
                    }
                }
                Ok(Value::list(mapped))
            }
            LoopKind::Map | LoopKind::MapEntry => self.transformed(body, rounds),
        }
    }

    /// Evaluates `all` and `exists`. As with `&&` and `||`, one deciding element is enough, even if others fail.
    fn quantified(&mut self, body: &'j Loop, rounds: impl Iterator<Item = Round<'j>>, decides: bool) -> Evaluated<'j> {
        let mut failure = None;
        for round in rounds {
            match self.condition(body, &body.body, round) {
                Ok(value) if value == decides => return Ok(Value::Bool(decides)),
                Ok(_) => {}
                // The limit is not a failure that a later element could decide.
                Err(Stop::TooLong) => return Err(Stop::TooLong),
                Err(stop) => failure = failure.or(Some(stop)),
            }
        }
        failure.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn transformed(&mut self, body: &'j Loop, rounds: impl Iterator<Item = Round<'j>>) -> Evaluated<'j> {
        let mut entries = Entries::default();
        for round in rounds {
            if !self.is_selected(body, &round)? {
                continue;
            }
            let key = round.0.clone();
            match (body.kind, self.round(body, &body.body, round)?) {
                (LoopKind::MapEntry, Value::Map(map)) => {
                    for (key, value) in map.iter() {
                        // Two rounds that make one key are an error, not a replacement.
                        self.insert(&mut entries, key, value)?;
                    }
                }
                (LoopKind::MapEntry, other) => {
                    return failed(format!("`transformMapEntry` takes a map, not {}", other.describe()));
                }
                (_, value) => self.insert(&mut entries, key, value)?,
            }
        }
        Ok(Value::map(entries))
    }

    /// Evaluates a part of the loop for one element.
    fn round(&mut self, body: &Loop, node: &'j Node, (first, second): Round<'j>) -> Evaluated<'j> {
        // A body of one literal would otherwise iterate for nothing.
        self.budget.charge(1)?;
        match body.variables {
            LoopVariables::One => self.value_with([second], node),
            LoopVariables::Two => self.value_with([first, second], node),
        }
    }

    fn is_selected(&mut self, body: &'j Loop, round: &Round<'j>) -> Result<bool, Stop> {
        body.condition.as_ref().map_or(Ok(true), |condition| self.condition(body, condition, round.clone()))
    }

    fn condition(&mut self, body: &Loop, node: &'j Node, round: Round<'j>) -> Result<bool, Stop> {
        match self.round(body, node, round)? {
            Value::Bool(value) => Ok(value),
            other => {
                let message = format!("a macro takes a boolean condition, not {}", other.describe());
                Err(Stop::Failed { message, span: Some(node.span.clone()) })
            }
        }
    }
}
