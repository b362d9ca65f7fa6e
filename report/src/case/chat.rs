//! Both conversations next to each other: what was asked, the calls of each side with their reads folded to one line, and what was
//! answered. Every step is among the raw steps, to which the numbers lead.

use std::collections::HashMap;

use counterproof_artifact::evaluation::{Divergence, SidePointer};
use counterproof_artifact::{Event, EventBody, Side};
use counterproof_evaluator::{
    Artifact, FollowedRef, LoadedAnswer, MadeCall, Resolved, Row, has_failed, messages, spoken, text,
};
use serde_json::{Map, Value};

use super::answer_text::{self, AnswerText};
use super::arguments::is_id;
use super::cells::HighlightedPart;
use super::context::{self, AnchorLink, CaseContext};
use super::reasons;
use crate::view::display::{self, DisplayText};

/// Maximum number of items of a side in a turn.
const ITEMS_SHOWN: usize = 40;

/// Bytes of a message of the user.
const MESSAGE_BYTES: usize = 1_200;

/// Characters of the arguments of a call, and of one value.
const ARGUMENTS_CHARS: usize = 56;
const VALUE_CHARS: usize = 40;

/// Maximum number of links to evidence of a call.
const EVIDENCE_SHOWN: usize = 2;

#[derive(Debug, Clone, Default)]
pub(crate) struct ChatView {
    pub(crate) turns: Vec<TurnView>,
    /// The tools that write.
    pub(crate) writing_tools: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct TurnView {
    /// `Turn 2`; empty for a case with a single request.
    pub(crate) heading: String,
    pub(crate) sides: Vec<SideChat>,
}

#[derive(Debug, Clone)]
pub(crate) struct SideChat {
    pub(crate) heading: &'static str,
    /// The id of the heading.
    pub(crate) id: String,
    /// The model, and how much the side did.
    pub(crate) about: String,
    pub(crate) items: Vec<ChatItem>,
}

#[derive(Debug, Clone)]
pub(crate) struct ChatItem {
    /// Whether the sides part here; may be empty.
    pub(crate) mark: &'static str,
    pub(crate) body: ItemBody,
}

#[derive(Debug, Clone)]
pub(crate) enum ItemBody {
    User(DisplayText),
    Agent(DisplayText),
    Reads(ReadsView),
    Call(Box<CallView>),
    Answer {
        who: String,
        text: AnswerText,
    },
    /// A side without an answer, or something that is not known.
    Note(String),
}

/// Consecutive reads.
#[derive(Debug, Clone)]
pub(crate) struct ReadsView {
    pub(crate) summary: String,
    pub(crate) calls: Vec<CallView>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct CallView {
    pub(crate) number: String,
    pub(crate) href: Option<String>,
    pub(crate) tool: String,
    pub(crate) arguments: Vec<HighlightedPart>,
    pub(crate) is_write: bool,
    pub(crate) failed: bool,
    /// `proposed only` for an action that no call carried out; otherwise empty.
    pub(crate) note: &'static str,
    pub(crate) refusal: String,
    pub(crate) evidence: Vec<AnchorLink>,
    pub(crate) lacks_evidence: bool,
}

/// The conversations of both sides. The sections of the raw steps are built before, because calls link to them.
pub(crate) fn view(context: &CaseContext<'_>) -> ChatView {
    let is_shared = context.case.differences.as_ref().is_some_and(counterproof_evaluator::Differences::is_empty);
    let sides = if is_shared || context.case.is_alone { &Side::BOTH[1..] } else { &Side::BOTH[..] };
    let made = &context.made;
    let chats: Vec<_> = sides.iter().map(|side| SideContext::new(context, *side, made.get(*side), is_shared)).collect();
    let turns = match turns(context) {
        0 => vec![TurnView { heading: String::new(), sides: chats.iter().map(|side| side.chat(None)).collect() }],
        count => (1..=count)
            .map(|turn| TurnView {
                heading: format!("Turn {turn}"),
                sides: chats.iter().map(|side| side.chat(Some(turn))).collect(),
            })
            .collect(),
    };
    let tool_of = |side: Side, call: &MadeCall| {
        let answer = &context.answer(side)?.answer;
        Some(match call.action {
            Some(action) => answer.proposed_actions[action].tool_name.clone(),
            None => answer.events[call.call?].tool_call()?.tool.clone(),
        })
    };
    let writing =
        |side: Side| made.get(side).iter().filter(|call| call.is_write).filter_map(move |call| tool_of(side, call));
    ChatView { turns, writing_tools: Side::BOTH.into_iter().flat_map(writing).collect() }
}

/// The number of turns; 0 for a case with a single request.
fn turns(context: &CaseContext<'_>) -> u64 {
    let asked = context.case.spec.map_or(0, |spec| spec.turns.len() as u64);
    let answered = |side| {
        let answer = context.answer(side)?;
        answer.case.answers_of_turns().map(|(turn, _)| turn).max()
    };
    Side::BOTH.into_iter().filter_map(answered).fold(asked, u64::max).min(MOST_TURNS)
}

/// Maximum number of turns.
const MOST_TURNS: u64 = 50;

/// How many calls a side made, and how many writes took effect, as the evaluation counts them.
pub(crate) fn counts(context: &CaseContext<'_>, side: Side) -> Option<(usize, usize)> {
    context.answer(side)?;
    let (made, story) = (context.made.get(side), &context.case.row.story);
    let writes = match (&context.case.differences, side) {
        // Without a comparison, the evaluation counts none.
        (None, _) => made.iter().filter(|call| call.is_write && !call.failed).count(),
        (Some(_), Side::Baseline) => usize::try_from(story.baseline_writes).unwrap_or(usize::MAX),
        (Some(_), Side::New) => usize::try_from(story.new_writes).unwrap_or(usize::MAX),
    };
    Some((made.iter().filter(|call| call.call.is_some()).count(), writes))
}

struct SideContext<'a> {
    context: &'a CaseContext<'a>,
    side: Side,
    made: &'a [MadeCall],
    /// By event: the call.
    by_event: HashMap<usize, &'a MadeCall>,
    marks: HashMap<Place, &'static str>,
    is_shared: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Event(usize),
    Action(usize),
    Answer,
}

impl<'a> SideContext<'a> {
    fn new(context: &'a CaseContext<'a>, side: Side, made: &'a [MadeCall], is_shared: bool) -> Self {
        let by_event = made.iter().filter_map(|call| Some((call.call?, call))).collect();
        let marks = marks(context, side, made);
        Self { context, side, made, by_event, marks, is_shared }
    }

    /// The conversation of a turn, or the whole without turns.
    fn chat(&self, turn: Option<u64>) -> SideChat {
        let mut items: Vec<_> = self.asked(turn).into_iter().collect();
        match self.context.answer(self.side) {
            Some(loaded) => {
                items.extend(self.steps(loaded, turn));
                items.extend(self.answer(loaded, turn));
            }
            None if turn.is_none_or(|turn| turn == 1) => items.push(plain(ItemBody::Note(self.absence()))),
            None => {}
        }
        SideChat {
            heading: match (self.is_shared, self.side) {
                (true, _) => "Both sides",
                (false, Side::Baseline) => "Baseline",
                (false, Side::New) => "New",
            },
            id: format!("{}-conversation{}", self.side, turn.map(|turn| format!("-{turn}")).unwrap_or_default()),
            about: if turn.is_none_or(|turn| turn == 1) { self.about() } else { String::new() },
            items,
        }
    }

    fn about(&self) -> String {
        let model = self.context.site.documents().and_then(|runs| runs.get(self.side).model());
        let did = counts(self.context, self.side).map(|counts| match counts {
            (calls, 0) => format!("{}, changed nothing", text::count(calls, "call", "calls")),
            (calls, writes) => {
                format!("{}, {}", text::count(calls, "call", "calls"), text::count(writes, "write", "writes"))
            }
        });
        let parts: Vec<_> = [model.map(display::visible), did].into_iter().flatten().collect();
        parts.join(" · ")
    }

    fn asked(&self, turn: Option<u64>) -> Option<ChatItem> {
        let spec = self.context.case.spec;
        let asked = spec.and_then(|spec| match turn {
            None => Some(spec.input.user.as_str()),
            Some(turn) => Some(spec.turns.get(usize::try_from(turn).ok()?.checked_sub(1)?)?.user.as_str()),
        });
        match asked.filter(|asked| !asked.is_empty()) {
            Some(asked) => Some(plain(ItemBody::User(self.context.budget.text(asked, MESSAGE_BYTES)))),
            None if spec.is_none() => Some(plain(ItemBody::Note("The request was not recorded.".to_owned()))),
            None => None,
        }
    }

    fn absence(&self) -> String {
        match self.context.artifact(self.side) {
            Artifact::Failure(failed) => {
                format!("No answer: {}", display::visible(&messages::failure(&failed.failure)))
            }
            other => reasons::absence(self.side, other).map(|note| format!("No answer: {note}")).unwrap_or_default(),
        }
    }

    fn steps(&self, loaded: &LoadedAnswer, turn: Option<u64>) -> Vec<ChatItem> {
        let mut items = Vec::new();
        let mut reads = Vec::new();
        let asked = self.context.case.spec.map(|spec| spec.input.user.as_str());
        let mut is_asked_again = asked.is_some();
        for (index, event) in loaded.answer.events.iter().enumerate().filter(|(_, event)| is_in(event, turn)) {
            if let Some((by_user, words)) = spoken(event) {
                // The request of the cases file is shown already.
                if by_user && std::mem::take(&mut is_asked_again) && Some(words) == asked {
                    continue;
                }
                self.fold(&mut reads, &mut items);
                let shown = self.context.budget.text(words, MESSAGE_BYTES);
                let body = if by_user { ItemBody::User(shown) } else { ItemBody::Agent(shown) };
                items.push(ChatItem { mark: self.mark(Place::Event(index)), body });
                continue;
            }
            let Some(call) = self.step(loaded, index, event) else { continue };
            if call.is_write || !call.refusal.is_empty() {
                self.fold(&mut reads, &mut items);
                items.push(ChatItem { mark: self.mark(Place::Event(index)), body: ItemBody::Call(Box::new(call)) });
            } else {
                reads.push((index, call));
            }
        }
        self.fold(&mut reads, &mut items);
        let is_last = turn.is_none_or(|turn| turn == turns(self.context));
        for made in self.made.iter().filter(|made| made.call.is_none() && is_last) {
            let Some(index) = made.action else { continue };
            let action = &loaded.answer.proposed_actions[index];
            let view = CallView {
                number: format!("action {}", index + 1),
                href: self.context.anchors.href(&context::action(self.side, index)),
                note: "proposed only",
                ..self.call(made, &action.tool_name, &action.params)
            };
            items.push(ChatItem { mark: self.mark(Place::Action(index)), body: ItemBody::Call(Box::new(view)) });
        }
        if items.len() > ITEMS_SHOWN {
            let hidden = items.split_off(ITEMS_SHOWN).len();
            items.push(plain(ItemBody::Note(format!("{hidden} more items are among the raw steps."))));
        }
        items
    }

    /// A call or a retrieval; `None` for any other event.
    fn step(&self, loaded: &LoadedAnswer, index: usize, event: &Event) -> Option<CallView> {
        let view = match &event.body {
            EventBody::ToolCall(call) => self.call(self.by_event.get(&index)?, &call.tool, &call.args),
            EventBody::Retrieval(found) => CallView {
                tool: "retrieval".to_owned(),
                arguments: vec![part(text::one_line(&found.query, ARGUMENTS_CHARS), false)],
                failed: has_failed(loaded, index),
                ..CallView::default()
            },
            _ => return None,
        };
        Some(CallView {
            number: (index + 1).to_string(),
            href: self.context.anchors.href(&context::event(self.side, index)),
            ..view
        })
    }

    fn call(&self, made: &MadeCall, tool: &str, arguments: &Map<String, Value>) -> CallView {
        let (evidence, lacks_evidence) = match made.action.filter(|_| made.is_write) {
            Some(action) => self.evidence(action),
            None => (Vec::new(), false),
        };
        CallView {
            tool: display::visible(&text::one_line(tool, ARGUMENTS_CHARS)),
            arguments: arguments_line(arguments, &self.changed(made.action)),
            is_write: made.is_write,
            failed: made.failed && made.refusal.is_none(),
            refusal: made.refusal.as_deref().map(display::visible).unwrap_or_default(),
            evidence,
            lacks_evidence,
            ..CallView::default()
        }
    }

    /// The parameters of an action that differ from those of its counterpart.
    fn changed(&self, action: Option<usize>) -> Vec<&str> {
        let (Some(action), Some(differences)) = (action, &self.context.case.differences) else { return Vec::new() };
        let is_it = |row: Row| matches!(row, Row::Both { .. }) && *row.indexes().get(self.side) == Some(action);
        let Some(row) = differences.actions.iter().find(|row| is_it(row.row)) else { return Vec::new() };
        let names = row.changes.iter().filter_map(|change| {
            let place = if self.side == Side::Baseline { &change.baseline } else { &change.new };
            // `/proposed_actions/0/params/amount`
            place.as_ref()?.pointer.split('/').nth(4)
        });
        names.collect()
    }

    /// Links to the evidence of an action. A case without any evidence says nothing of a single action.
    fn evidence(&self, action: usize) -> (Vec<AnchorLink>, bool) {
        let case = self.context.case;
        let refs = match self.side {
            Side::Baseline => &case.baseline_evidence,
            Side::New => &case.new_evidence,
        };
        let links = |followed: &FollowedRef| match followed.resolved.as_ref()? {
            Resolved::Event(index) => {
                let href = self.context.anchors.href(&context::event(self.side, *index))?;
                Some(AnchorLink { text: format!("step {}", index + 1), href })
            }
            Resolved::Asset(_) => {
                let href = self.context.anchors.href(&context::action(self.side, action))?;
                Some(AnchorLink { text: "file".to_owned(), href })
            }
        };
        let of_action = refs.get(action).map(Vec::as_slice).unwrap_or_default();
        let is_bare = of_action.iter().all(|followed| followed.resolved.is_none());
        let is_recorded = case.baseline_evidence.iter().chain(&case.new_evidence).any(|refs| !refs.is_empty());
        (of_action.iter().filter_map(links).take(EVIDENCE_SHOWN).collect(), is_bare && is_recorded)
    }

    /// Adds the reads so far: one as it is, several folded.
    fn fold(&self, reads: &mut Vec<(usize, CallView)>, items: &mut Vec<ChatItem>) {
        let mark = reads.iter().map(|(index, _)| self.mark(Place::Event(*index))).find(|mark| !mark.is_empty());
        let mut calls: Vec<_> = std::mem::take(reads).into_iter().map(|(_, call)| call).collect();
        let body = match calls.len() {
            0 => return,
            1 => ItemBody::Call(Box::new(calls.remove(0))),
            _ => ItemBody::Reads(ReadsView { summary: summary(&calls), calls }),
        };
        items.push(ChatItem { mark: mark.unwrap_or_default(), body });
    }

    fn answer(&self, loaded: &LoadedAnswer, turn: Option<u64>) -> Option<ChatItem> {
        let last = turns(self.context);
        let change = self.context.case.differences.as_ref().map(|differences| &differences.output);
        let (output, change) = match turn.filter(|turn| *turn < last) {
            None => (&loaded.answer.final_output, change),
            Some(turn) => (loaded.case.answers_of_turns().find(|(of, _)| *of == turn)?.1, None),
        };
        let usage = self.context.case.row.usage.as_ref().filter(|_| self.context.case.row.repeats.is_none());
        let usage = usage
            .and_then(|usage| if self.side == Side::Baseline { usage.baseline.as_ref() } else { usage.new.as_ref() });
        let took = usage.and_then(|usage| usage.duration_ms).filter(|_| turn.is_none());
        Some(ChatItem {
            mark: if change.is_some() { self.mark(Place::Answer) } else { "" },
            body: ItemBody::Answer {
                who: took
                    .map_or_else(|| "agent".to_owned(), |ms| format!("agent, after {}", display::duration(ms.value()))),
                text: answer_text::of_output(self.side, output, change),
            },
        })
    }

    fn mark(&self, place: Place) -> &'static str {
        self.marks.get(&place).copied().unwrap_or_default()
    }
}

const fn plain(body: ItemBody) -> ChatItem {
    ChatItem { mark: "", body }
}

const fn part(text: String, marked: bool) -> HighlightedPart {
    HighlightedPart { text, marked }
}

fn is_in(event: &Event, turn: Option<u64>) -> bool {
    turn.is_none_or(|turn| event.extra().get("turn").and_then(Value::as_u64).unwrap_or(1) == turn)
}

/// Where the sides part: the first difference, and the one after which they stay apart.
fn marks(context: &CaseContext<'_>, side: Side, made: &[MadeCall]) -> HashMap<Place, &'static str> {
    let row = &context.case.row;
    let places = |divergence: &Option<Divergence>| -> Vec<Place> {
        let pointers = divergence.iter().flat_map(|divergence| &divergence.pointers).filter(|at| at.side == side);
        pointers.filter_map(|at| place(at, made)).collect()
    };
    let mut marks: HashMap<_, _> =
        places(&row.first_divergence).into_iter().map(|at| (at, "first difference")).collect();
    for at in places(&row.lasting_divergence) {
        marks
            .entry(at)
            .and_modify(|mark| *mark = "first difference, apart from here on")
            .or_insert("apart from here on");
    }
    marks
}

/// The place in the conversation that a pointer names. A result is shown with its call, a call with its action.
fn place(at: &SidePointer, made: &[MadeCall]) -> Option<Place> {
    match at.entry() {
        ("events", Some(index)) => {
            let call = made.iter().find(|call| call.result == Some(index)).and_then(|call| call.call);
            Some(Place::Event(call.unwrap_or(index)))
        }
        ("proposed_actions", Some(index)) => {
            let call = made.iter().find(|call| call.action == Some(index)).and_then(|call| call.call);
            Some(call.map_or(Place::Action(index), Place::Event))
        }
        ("final_output", _) => Some(Place::Answer),
        _ => None,
    }
}

/// `10 reads, steps 1 to 20: get_user_details, get_reservation_details ×7`
fn summary(calls: &[CallView]) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for call in calls {
        match names.iter_mut().find(|(name, _)| *name == call.tool) {
            Some((_, count)) => *count += 1,
            None => names.push((&call.tool, 1)),
        }
    }
    let times =
        |(name, count): &(&str, usize)| if *count == 1 { (*name).to_owned() } else { format!("{name} ×{count}") };
    let mut listed: Vec<_> = names.iter().take(NAMES_SHOWN).map(times).collect();
    if names.len() > NAMES_SHOWN {
        listed.push(format!("{} more", names.len() - NAMES_SHOWN));
    }
    let failed = match calls.iter().filter(|call| call.failed).count() {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let (first, last) = (&calls[0].number, &calls[calls.len() - 1].number);
    format!("{} reads, steps {first} to {last}{failed}: {}", calls.len(), listed.join(", "))
}

/// Maximum number of names in the summary of several reads.
const NAMES_SHOWN: usize = 6;

/// The arguments of a call in one line, ids first, then what differs: `FDZ0T5, amount 500`.
fn arguments_line(arguments: &Map<String, Value>, changed: &[&str]) -> Vec<HighlightedPart> {
    let mut sorted: Vec<_> = arguments.iter().filter(|(_, value)| !value.is_null()).collect();
    // Stable: the other arguments stay in their order.
    sorted.sort_by_key(|(name, _)| (!is_id(name), !changed.contains(&name.as_str())));
    let mut parts: Vec<HighlightedPart> = Vec::new();
    let mut length = 0;
    for (index, (name, value)) in sorted.iter().enumerate() {
        let value = match value {
            Value::String(text) => text::one_line(text, VALUE_CHARS),
            other => text::one_line(&other.to_string(), VALUE_CHARS),
        };
        let named = if is_id(name) || sorted.len() == 1 { value } else { format!("{name} {value}") };
        let is_changed = changed.contains(&name.as_str());
        if length + named.chars().count() > ARGUMENTS_CHARS && index > 0 && !(is_changed && length < ARGUMENTS_CHARS) {
            parts.push(part(" …".to_owned(), false));
            break;
        }
        length += named.chars().count();
        if index > 0 {
            parts.push(part(", ".to_owned(), false));
        }
        parts.push(part(display::visible(&named), is_changed));
    }
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn several_reads_are_one_line_with_counts() {
        let call = |number: &str, tool: &str, failed| CallView {
            number: number.to_owned(),
            tool: tool.to_owned(),
            failed,
            ..CallView::default()
        };
        let calls = [call("1", "get_user", false), call("3", "get_order", true), call("5", "get_order", false)];
        assert_eq!(summary(&calls), "3 reads, steps 1 to 5, 1 failed: get_user, get_order ×2");
    }

    #[test]
    fn arguments_are_short_with_ids_first_and_changes_marked() {
        let line = |arguments: &Value, changed: &[&str]| -> String {
            let parts = arguments_line(arguments.as_object().unwrap(), changed);
            parts.iter().map(|part| if part.marked { format!("[{}]", part.text) } else { part.text.clone() }).collect()
        };
        assert_eq!(line(&json!({"amount": 500, "order_id": "W1"}), &["amount"]), "W1, [amount 500]");
        assert_eq!(line(&json!({"city": "Bonn"}), &[]), "Bonn");
        let long = json!({"a": "x".repeat(60), "b": "y".repeat(60), "c": "z".repeat(60)});
        assert!(line(&long, &[]).chars().count() < 2 * ARGUMENTS_CHARS);
    }
}
