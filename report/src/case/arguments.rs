//! The arguments that differ between the calls of both sides, each with the values of both and with what the values are from. A
//! call about another record is one line, because all of its other arguments differ with it.

use counterproof_artifact::{Side, Sides};
use counterproof_evaluator::{TracedArgument, ValueSource, messages};

use super::context::CaseContext;
use crate::view::display;

/// Rows that are visible at once, and all rows.
const ROWS_OPEN: usize = 10;
const ROWS_SHOWN: usize = 60;

/// Maximum number of values of a side in a row, and of their sources.
const VALUES_SHOWN: usize = 3;
const SOURCES_SHOWN: usize = 2;

/// More arguments than this that differ with the id of a record are not listed.
const WITH_RECORD: usize = 2;

#[derive(Debug, Clone, Default)]
pub(crate) struct ArgumentsView {
    pub(crate) rows: Vec<ArgumentRow>,
    pub(crate) more_rows: Vec<ArgumentRow>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentRow {
    pub(crate) tool: String,
    /// Its name, or its path.
    pub(crate) argument: String,
    /// What differs with it; may be empty.
    pub(crate) note: String,
    pub(crate) baseline: ArgumentCell,
    pub(crate) new: ArgumentCell,
    pub(crate) source: String,
    /// Whether a value of a write is in nothing that was recorded.
    pub(crate) is_made_up: bool,
    pub(crate) is_write: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ArgumentCell {
    /// The values, each with whether only this side has it.
    pub(crate) values: Vec<(String, bool)>,
    /// A note in place of the values, or the number of values that are left out; may be empty.
    pub(crate) note: String,
}

/// The arguments of one name of one tool.
struct Group<'a> {
    tool: &'a str,
    name: String,
    sides: Sides<Vec<&'a TracedArgument>>,
}

impl Group<'_> {
    fn values(&self, side: Side) -> Vec<&str> {
        let mut values: Vec<&str> = Vec::new();
        for argument in self.sides.get(side) {
            if !values.contains(&argument.value.as_str()) {
                values.push(&argument.value);
            }
        }
        values
    }

    fn differs(&self) -> bool {
        let [mut old, mut new] = Side::BOTH.map(|side| self.values(side));
        old.sort_unstable();
        new.sort_unstable();
        old != new
    }

    /// Whether the agent wrote the words itself: long texts without an origin.
    fn is_prose(&self) -> bool {
        let all = || self.sides.iter().flat_map(|(_, arguments)| arguments);
        all().all(|argument| argument.source == ValueSource::NotTraced)
            && all().any(|argument| argument.value.ends_with('…'))
    }

    /// Whether it is an id of which both sides passed different values only.
    fn is_other_record(&self) -> bool {
        let [old, new] = Side::BOTH.map(|side| self.values(side));
        is_id(&self.name) && !old.is_empty() && !new.is_empty() && old.iter().all(|value| !new.contains(value))
    }
}

/// The rows of the table; empty where the calls of both sides have the same arguments.
pub(crate) fn view(context: &CaseContext<'_>, writes: &[String]) -> ArgumentsView {
    let name_of = |side: Side, event: usize| {
        let loaded = context.answer(side)?;
        Some(messages::step_name(loaded.answer.events.get(event)?, loaded))
    };
    let mut rows = rows(&context.case.arguments, writes, &name_of);
    rows.truncate(ROWS_SHOWN);
    let more_rows = rows.split_off(rows.len().min(ROWS_OPEN));
    ArgumentsView { rows, more_rows }
}

/// `event_name` names an event of a side.
fn rows(
    arguments: &Sides<Vec<TracedArgument>>,
    writes: &[String],
    event_name: &impl Fn(Side, usize) -> Option<String>,
) -> Vec<ArgumentRow> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (side, argument) in Side::BOTH.into_iter().flat_map(|side| arguments.get(side).iter().map(move |it| (side, it)))
    {
        let name = name(&argument.pointer);
        let position = groups.iter().position(|group| group.tool == argument.tool && group.name == name);
        let position = position.unwrap_or_else(|| {
            groups.push(Group { tool: &argument.tool, name, sides: Sides::default() });
            groups.len() - 1
        });
        groups[position].sides.get_mut(side).push(argument);
    }
    let called =
        |side: Side, tool: &str| groups.iter().any(|group| group.tool == tool && !group.sides.get(side).is_empty());
    let mut rows = Vec::new();
    let mut tools: Vec<&str> = Vec::new();
    for group in &groups {
        if !tools.contains(&group.tool) {
            tools.push(group.tool);
        }
    }
    // Stable: within each kind, in the order of the calls.
    tools.sort_by_key(|tool| !writes.iter().any(|write| write == tool));
    for tool in tools {
        let differing: Vec<_> =
            groups.iter().filter(|group| group.tool == tool && group.differs() && !group.is_prose()).collect();
        let record = differing.iter().find(|group| group.is_other_record());
        let is_write = writes.iter().any(|write| write == tool);
        let is_one_sided = Side::BOTH.iter().any(|side| !called(*side, tool));
        let main = differing.iter().find(|group| is_id(&group.name)).or_else(|| differing.first());
        match (record, main) {
            (Some(record), _) if differing.len() > WITH_RECORD + 1 => {
                let note = format!("another record: {} more arguments differ with it", differing.len() - 1);
                rows.push(row(record, note, is_write, &called, event_name));
            }
            (_, Some(main)) if is_one_sided && differing.len() > WITH_RECORD => {
                let note = format!("and {} more arguments", differing.len() - 1);
                rows.push(row(main, note, is_write, &called, event_name));
            }
            _ => rows.extend(differing.iter().map(|group| row(group, String::new(), is_write, &called, event_name))),
        }
    }
    rows
}

/// Whether an argument names a record.
pub(super) fn is_id(name: &str) -> bool {
    name == "id" || name.ends_with("_id") || name.ends_with("Id")
}

/// The name of an argument without the positions within lists.
fn name(pointer: &str) -> String {
    let path = messages::field_path(pointer);
    let names: Vec<_> = path.split('.').filter(|part| !part.bytes().all(|byte| byte.is_ascii_digit())).collect();
    names.join(".")
}

fn row(
    group: &Group<'_>,
    note: String,
    is_write: bool,
    called: &impl Fn(Side, &str) -> bool,
    event_name: &impl Fn(Side, usize) -> Option<String>,
) -> ArgumentRow {
    let cell = |side: Side| {
        let (own, other) = (group.values(side), group.values(side.other()));
        let hidden = own.len().saturating_sub(VALUES_SHOWN);
        ArgumentCell {
            values: own
                .iter()
                .take(VALUES_SHOWN)
                .map(|value| (display::visible(value), !other.contains(value)))
                .collect(),
            note: match (own.is_empty(), hidden) {
                (true, _) if called(side, group.tool) => "not passed".to_owned(),
                (true, _) => "no call".to_owned(),
                (false, 0) => String::new(),
                (false, hidden) => format!("and {hidden} more"),
            },
        }
    };
    // The values of new decide; without any, those of the baseline are explained.
    let side = if group.sides.new.is_empty() { Side::Baseline } else { Side::New };
    let other = group.values(side.other());
    let own = group.sides.get(side).iter().filter(|argument| !other.contains(&argument.value.as_str()));
    let mut sources: Vec<String> = Vec::new();
    let mut is_made_up = false;
    for argument in own {
        is_made_up |= argument.source == ValueSource::Nothing && side == Side::New;
        let Some(source) = source(argument.source, side, event_name) else { continue };
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    let hidden = sources.len().saturating_sub(SOURCES_SHOWN);
    sources.truncate(SOURCES_SHOWN);
    let more = if hidden > 0 { format!(" and {hidden} more") } else { String::new() };
    ArgumentRow {
        tool: display::visible(group.tool),
        argument: display::visible(&group.name),
        note,
        baseline: cell(Side::Baseline),
        new: cell(Side::New),
        source: if sources.is_empty() { "–".to_owned() } else { format!("{side}: {}{more}", sources.join(", ")) },
        is_made_up: is_made_up && is_write,
        is_write,
    }
}

fn source(source: ValueSource, side: Side, event_name: &impl Fn(Side, usize) -> Option<String>) -> Option<String> {
    match source {
        ValueSource::Request => Some("request".to_owned()),
        ValueSource::Event(index) => event_name(side, index).map(|name| display::visible(&name)),
        ValueSource::Nothing => Some("nothing that was recorded".to_owned()),
        ValueSource::NotTraced => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(tool: &str, name: &str, value: &str, source: ValueSource) -> TracedArgument {
        TracedArgument {
            tool: tool.to_owned(),
            pointer: format!("/events/0/args/{name}"),
            value: value.to_owned(),
            source,
        }
    }

    fn shown(baseline: Vec<TracedArgument>, new: Vec<TracedArgument>, writes: &[&str]) -> Vec<ArgumentRow> {
        let writes: Vec<_> = writes.iter().map(|write| (*write).to_owned()).collect();
        rows(&Sides::new(baseline, new), &writes, &|_, index| Some(format!("result of step {index}")))
    }

    #[test]
    fn values_are_shown_with_what_they_are_from() {
        let (old, new) = (
            vec![
                argument("read", "id", "A", ValueSource::Request),
                argument("read", "page", "1", ValueSource::NotTraced),
            ],
            vec![
                argument("read", "id", "A", ValueSource::Request),
                argument("read", "id", "B", ValueSource::Event(3)),
                argument("read", "page", "1", ValueSource::NotTraced),
                argument("cancel", "id", "C", ValueSource::Nothing),
            ],
        );
        let rows = shown(old, new, &["cancel"]);
        let brief: Vec<_> = rows.iter().map(|row| (row.tool.as_str(), row.source.as_str(), row.is_made_up)).collect();
        assert_eq!(
            brief,
            [("cancel", "new: nothing that was recorded", true), ("read", "new: result of step 3", false)],
            "writes first; what is equal is left out"
        );
        assert_eq!(rows[0].baseline.note, "no call");
        assert_eq!(rows[1].new.values, [("A".to_owned(), false), ("B".to_owned(), true)]);
    }

    #[test]
    fn a_call_about_another_record_is_one_line() {
        let record = |id: &str| {
            let field = |name: &str| argument("save", name, &format!("{name} {id}"), ValueSource::NotTraced);
            ["order_id", "name", "street", "city"].map(field).to_vec()
        };
        let only_new = shown(Vec::new(), record("2"), &[]);
        assert_eq!((only_new.len(), only_new[0].note.as_str()), (1, "and 3 more arguments"));
        let rows = shown(record("1"), record("2"), &[]);
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].argument.as_str(), rows[0].note.as_str()),
            ("order_id", "another record: 3 more arguments differ with it")
        );
    }
}
