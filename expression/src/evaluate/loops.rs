//! Macros, which iterate over the elements of a list or the entries of a map.

use super::evaluation::Evaluation;
use crate::budget::{Evaluated, Stop, failed};
use crate::node::{Loop, LoopKind, LoopVariables, Node};
use crate::values::{Entries, Value};

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
                    count += usize::from(self.condition(body, &body.body, round)?);
                }
                Ok(Value::Bool(count == 1))
            }
            LoopKind::Filter => {
                let mut selected = Vec::new();
                for round in rounds {
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
