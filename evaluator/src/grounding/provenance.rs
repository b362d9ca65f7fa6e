//! Provenance within a pair of answers: the counterparts of both sides, the origins of the values passed to tools, and the suspects: values
//! of the new side without an origin.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use counterproof_artifact::{EventBody, RiskLevel, Side, Sides};
use serde_json::Value;

use super::nearest::{self, Nearest, Wanted};
use super::origins::{leaf_pointer, name_of};
use super::{Holder, Leaf, Origin, Origins};
use crate::diff::differences::Counterparts;
use crate::diff::{Differences, WithEvidence};
use crate::grounding;
use crate::load::LoadedAnswer;
use crate::load::case_input;
use crate::load::case_input::CaseInput;
use crate::values::meaning_hash;
use crate::values::stringified;

#[derive(Debug, Default)]
pub(crate) struct Provenance<'a> {
    pub counterparts: Counterparts,
    /// The origins of the baseline's values; empty if both transcripts are equal.
    pub baseline: Origins<'a>,
    /// The origins of new's values; empty if both transcripts are equal.
    pub new: Origins<'a>,
    /// New's values without an origin.
    pub suspects: Vec<Suspect<'a>>,
}

impl<'a> Provenance<'a> {
    /// Traces two aligned answers. `inputs` has the input of the case as each side received it.
    pub(crate) fn trace(
        sides: Sides<WithEvidence<'a>>,
        differences: &Differences,
        inputs: Sides<&CaseInput<'_>>,
    ) -> Self {
        let Sides { baseline, new } = sides;
        let counterparts = Counterparts::new(differences);
        // The fast path of equal transcripts: no value can have lost its origin. It does not apply to a complete transcript,
        // in which every value without an origin is reported, with or without a difference.
        if is_unchanged_transcript(sides) {
            return Self { counterparts, ..Self::default() };
        }
        let origins = sides.zip(inputs).map(|(side, input)| Origins::trace(side.loaded, input));
        // A function, because it may read the stored request, which only a value without an origin needs.
        let transcript = || Transcript::new(new.loaded, inputs.new);
        let answers = Sides { baseline: &origins.baseline, new: &origins.new };
        let mut suspects = grounding::suspects(answers, new.loaded, &counterparts, transcript);
        explain(&mut suspects, Sides::new(baseline.loaded, new.loaded), &origins, inputs.new);
        Self { counterparts, baseline: origins.baseline, new: origins.new, suspects }
    }
    /// The arguments for which the baseline passed a value without an origin.
    pub(crate) fn unsourced_in_baseline(&self) -> impl Iterator<Item = u64> {
        self.baseline.leaves.iter().filter(|leaf| leaf.origin == Origin::Nowhere).map(|leaf| leaf.argument)
    }
}

/// Whether no value of new can have lost its origin.
pub(crate) fn is_unchanged_transcript(sides: Sides<WithEvidence<'_>>) -> bool {
    let Sides { baseline, new } = sides;
    !new.loaded.case.transcript_is_complete && grounding::is_same_transcript(baseline.loaded, new.loaded)
}

/// A value of the new side without an origin.
#[derive(Debug, Clone)]
pub(crate) struct Suspect<'a> {
    pub leaf: Leaf<'a>,
    /// The value; if the leaf is a list or an object that is written as text, the element without an origin.
    pub value: Cow<'a, Value>,
    /// The baseline's value for the same argument, from the paired call or action if that has the argument.
    pub baseline: Option<Leaf<'a>>,
    /// True if a value of the baseline for the same argument has no origin either.
    pub in_baseline: bool,
    /// True if the baseline has the same value: it was not made up, but its origin is gone.
    pub baseline_has_value: bool,
    /// The known value that is nearest; of the first [`EXPLAINED`] suspects only.
    pub nearest: Option<Nearest>,
    pub transcript: Transcript,
    /// The stated risk of the action, or of the call and the action that it carried out.
    pub risk: Option<RiskLevel>,
}

impl Suspect<'_> {
    /// True if the value was made up: the transcript holds what the user said, and the baseline has another value.
    pub(crate) fn is_made_up(&self) -> bool {
        self.transcript != Transcript::Partial && (self.in_baseline || !self.baseline_has_value)
    }
}

#[derive(Debug, Clone, Copy)]
struct ArgumentSummary<'a> {
    first: Leaf<'a>,
    all_grounded: bool,
    any_from_nowhere: bool,
}

#[derive(Default)]
struct BaselineArguments<'a> {
    by_argument: HashMap<u64, ArgumentSummary<'a>>,
    /// By the first name of the argument, for lists and objects that only one side writes as text.
    by_top: HashMap<u64, ArgumentSummary<'a>>,
    by_holder: HashMap<(Holder, u64), ArgumentSummary<'a>>,
    /// Each argument with each of its values.
    values: HashSet<(u64, u64)>,
}

impl<'a> BaselineArguments<'a> {
    fn new(baseline: &Origins<'a>) -> Self {
        let mut arguments = Self::default();
        // A value that needs no origin is not a counterpart of one that does.
        for leaf in baseline.leaves.iter().filter(|leaf| leaf.origin != Origin::Exempt) {
            note(arguments.by_argument.entry(leaf.argument), leaf);
            note(arguments.by_top.entry(leaf.top_argument), leaf);
            note(arguments.by_holder.entry((leaf.holder, leaf.argument)), leaf);
            for value in elements(leaf.value) {
                arguments.values.insert((leaf.top_argument, meaning_hash(&value)));
            }
        }
        arguments
    }

    /// The values to compare with a leaf: those of the paired call or action, or without it all values of the argument.
    fn of(&self, leaf: &Leaf<'_>, paired: Option<Holder>) -> Option<&ArgumentSummary<'a>> {
        // The paired call is the best comparison; values at the same argument elsewhere show at least whether it is usually
        // grounded.
        let paired = paired.and_then(|holder| self.by_holder.get(&(holder, leaf.argument)));
        let is_written = || leaf.value.as_str().is_some_and(|text| stringified::parse(text).is_some());
        paired
            .or_else(|| self.by_argument.get(&leaf.argument))
            .or_else(|| self.by_top.get(&leaf.top_argument).filter(|_| is_written()))
    }
}

/// Finds suspects: values of new without an origin whose counterparts in the baseline are all grounded. If new's transcript is
/// declared complete, all values without an origin are suspects.
pub(crate) fn suspects<'a>(
    origins: Sides<&Origins<'a>>,
    loaded: &LoadedAnswer,
    counterparts: &Counterparts,
    transcript: impl FnOnce() -> Transcript,
) -> Vec<Suspect<'a>> {
    // A value that a call shares with its action is reported only for the action.
    let new = origins.new;
    let nowhere: Vec<_> = new.leaves.iter().filter(|leaf| leaf.origin == Origin::Nowhere).collect();
    if nowhere.is_empty() {
        return Vec::new();
    }
    let transcript = transcript();
    let arguments = BaselineArguments::new(origins.baseline);
    let of_actions: HashSet<_> = nowhere
        .iter()
        .filter(|leaf| matches!(leaf.holder, Holder::Action(_)))
        .map(|leaf| (leaf.holder, leaf.argument, meaning_hash(leaf.value)))
        .collect();
    // A call and the action that it executes have the same values. The action is what a person approves, so it is reported.
    let mut found = Vec::new();
    for leaf in nowhere {
        if let Some(action) = new.action_of(leaf.holder)
            && of_actions.contains(&(action, leaf.argument, meaning_hash(leaf.value)))
        {
            continue;
        }
        let risk = risk_of(loaded, new, leaf.holder);
        let argument = arguments.of(leaf, counterparts.other(Side::New, leaf.holder));
        let is_suspect = match (transcript, argument) {
            (Transcript::Complete, _) if new.input_is_known => true,
            (_, Some(argument)) => argument.all_grounded,
            // The baseline has no such argument. What a high-risk action is given has to come from somewhere all the same.
            (Transcript::Asked | Transcript::WithUser, None) => {
                risk == Some(RiskLevel::High) && !leaf.is_sum && is_particular(leaf.value)
            }
            (_, None) => false,
        };
        // Bounded, since the name of each argument is found by a walk over all.
        let may_be_word = transcript != Transcript::Complete && found.len() < NAMED;
        if !is_suspect || (may_be_word && is_own_word(loaded, leaf)) {
            continue;
        }
        for value in without_origin(new, leaf) {
            let baseline_has_value = arguments.values.contains(&(leaf.top_argument, meaning_hash(&value)));
            // What the user said is not known, and the baseline shows that the value is right.
            if baseline_has_value && transcript == Transcript::Partial {
                continue;
            }
            found.push(Suspect {
                leaf: *leaf,
                value,
                baseline: argument.map(|argument| argument.first),
                in_baseline: argument.is_some_and(|argument| argument.any_from_nowhere),
                baseline_has_value,
                nearest: None,
                transcript,
                risk,
            });
        }
    }
    found
}

/// Most suspects of a case that are explained.
pub(crate) const EXPLAINED: usize = 20;

/// Looks for the nearest known value of each suspect, and for the baseline's value of the same object.
fn explain<'a>(
    suspects: &mut [Suspect<'a>],
    answers: Sides<&LoadedAnswer>,
    origins: &Sides<Origins<'a>>,
    asked: &CaseInput<'_>,
) {
    let explained = suspects.len().min(EXPLAINED);
    let suspects = &mut suspects[..explained];
    let mut wanted = Vec::new();
    for suspect in suspects.iter_mut() {
        let leaf = &suspect.leaf;
        let pointer = leaf_pointer(answers.new, leaf.holder, leaf.ordinal);
        wanted.push(Wanted::new(&suspect.value, name_of(&pointer), origins.new.limit(leaf.holder)));
        if let Some(first) = suspect.baseline {
            suspect.baseline = Some(same_object(leaf, first, answers, origins));
        }
    }
    nearest::find(answers.new, asked, &mut wanted);
    for (suspect, wanted) in suspects.iter_mut().zip(wanted) {
        suspect.nearest = wanted.into_nearest();
    }
}

/// The baseline's value for the same argument of the same object: the one whose neighbours are the same as those of the
/// leaf. `first` is the first one, of the paired call if that has the argument.
fn same_object<'a>(
    leaf: &Leaf<'a>,
    first: Leaf<'a>,
    answers: Sides<&LoadedAnswer>,
    origins: &Sides<Origins<'a>>,
) -> Leaf<'a> {
    let mine = neighbours(answers.new, &origins.new, leaf);
    let is_candidate = |other: &&Leaf<'a>| other.holder == first.holder && other.argument == first.argument;
    let held = origins.baseline.held_by(first.holder).iter().filter(is_candidate);
    // Values that new has too are those of other objects.
    let of_new = origins.new.held_by(leaf.holder).iter().filter(|other| other.argument == leaf.argument);
    let of_new: HashSet<u64> = of_new.take(CANDIDATES).map(|other| meaning_hash(other.value)).collect();
    let fit = |other: &Leaf<'a>| {
        let shared = neighbours(answers.baseline, &origins.baseline, other).intersection(&mine).count();
        (shared, !of_new.contains(&meaning_hash(other.value)))
    };
    let mut best = (fit(&first), first);
    for other in held.take(CANDIDATES) {
        let fit = fit(other);
        if fit > best.0 {
            best = (fit, *other);
        }
    }
    best.1
}

/// Most values of one argument that are compared to find the same object.
const CANDIDATES: usize = 50;

/// The values next to a leaf in its object, each with its argument.
fn neighbours(loaded: &LoadedAnswer, origins: &Origins<'_>, leaf: &Leaf<'_>) -> HashSet<(u64, u64)> {
    // The leaves of a holder are in order, so the neighbours stand next to the leaf.
    let held = origins.held_by(leaf.holder);
    let near = leaf.ordinal.saturating_sub(NEIGHBOURS)..held.len().min(leaf.ordinal + NEIGHBOURS + 1);
    let near = held.get(near).unwrap_or_default().iter().filter(|other| other.argument != leaf.argument);
    let parent = |leaf: &Leaf<'_>| {
        let pointer = leaf_pointer(loaded, leaf.holder, leaf.ordinal);
        pointer.rsplit_once('/').map(|(parent, _)| parent.to_owned())
    };
    let mut near = near.peekable();
    // The pointer last: it takes a walk over the arguments.
    if near.peek().is_none() {
        return HashSet::new();
    }
    let object = parent(leaf);
    near.filter(|other| parent(other) == object).map(|other| (other.argument, meaning_hash(other.value))).collect()
}

/// Most fields on each side of a leaf that are compared to find the same object.
const NEIGHBOURS: usize = 8;

/// The values of a list or an object that is written as text, or the value itself.
fn elements(value: &Value) -> Vec<Cow<'_, Value>> {
    let written = value.as_str().and_then(stringified::scalars);
    written.map_or_else(|| vec![Cow::Borrowed(value)], |values| values.into_iter().map(Cow::Owned).collect())
}

/// The value of a leaf without an origin, or of its elements those without.
fn without_origin<'a>(origins: &Origins<'a>, leaf: &Leaf<'a>) -> Vec<Cow<'a, Value>> {
    let Some(missing) = origins.missing_elements.get(&(leaf.holder, leaf.ordinal)) else {
        return vec![Cow::Borrowed(leaf.value)];
    };
    let elements = elements(leaf.value);
    missing.iter().filter_map(|index| elements.get(*index).cloned()).collect()
}

/// The risk that an action states, or a call and the action that it carried out.
fn risk_of(loaded: &LoadedAnswer, origins: &Origins<'_>, holder: Holder) -> Option<RiskLevel> {
    let of_action = |index: usize| loaded.answer.proposed_actions[index].risk_level;
    let of_call = |index: usize| loaded.answer.events[index].tool_call()?.risk_level;
    let levels = match (holder, origins.action_of(holder)) {
        (Holder::Action(index), _) => [Some(of_action(index)), None],
        (Holder::Call(call), Some(Holder::Action(index))) => [of_call(call), Some(of_action(index))],
        (Holder::Call(call), _) => [of_call(call), None],
    };
    let higher = |a: RiskLevel, b: RiskLevel| if b.exceeds(a) || a == RiskLevel::Unknown { b } else { a };
    levels.into_iter().flatten().reduce(higher)
}

/// True for a value that no agent has in its own vocabulary: with a digit, an address, or a name of several capitalized words.
fn is_particular(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::String(text) => {
            let is_name = || text.contains(' ') && text.split(' ').all(|word| word.starts_with(char::is_uppercase));
            text.bytes().any(|byte| byte.is_ascii_digit() || byte == b'@') || is_name()
        }
        _ => false,
    }
}

/// Most suspects of a case whose arguments are looked at by name.
const NAMED: usize = 100;

/// Words in the name of an argument that identifies a person, a place or a thing.
const IDENTIFIES: &str =
    "id ids user username name email account recipient receiver payee beneficiary to city origin destination code";

/// True for a word in lower case, such as `damaged_on_arrival`, at an argument that identifies nothing: agents choose such words
/// themselves.
fn is_own_word(loaded: &LoadedAnswer, leaf: &Leaf<'_>) -> bool {
    let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-".contains(&byte));
    // The pointer last: it takes a walk over the arguments.
    let name = || name_of(&leaf_pointer(loaded, leaf.holder, leaf.ordinal)).to_lowercase();
    leaf.value.as_str().is_some_and(is_word) && !identifies(&name())
}

/// Whether an argument with this name, in lower case, identifies a person, a place or a thing.
pub(crate) fn identifies(name: &str) -> bool {
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| IDENTIFIES.split(' ').any(|known| known == word))
}

fn note<'a, K>(entry: std::collections::hash_map::Entry<'_, K, ArgumentSummary<'a>>, leaf: &Leaf<'a>) {
    let argument = entry.or_insert(ArgumentSummary { first: *leaf, all_grounded: true, any_from_nowhere: false });
    // A grounded sum does not imply that another sum is grounded: it may need a rate that no transcript contains.
    argument.all_grounded &= leaf.origin.is_grounded() && !leaf.is_sum;
    argument.any_from_nowhere |= leaf.origin == Origin::Nowhere;
}

/// How much of what the agent received the transcript of the new side contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transcript {
    /// Everything, as the producer declares. Every value without an origin was made up.
    Complete,
    /// The input of the runner and what tools returned. Nobody else spoke to the agent, but instructions of the agent may be
    /// missing, as in [`Transcript::WithUser`].
    Asked,
    /// What the user said and what tools returned. Instructions of the agent may be missing, so the comparison with the baseline
    /// is needed as evidence.
    WithUser,
    /// What the user said may be missing. A value without an origin may come from there.
    Partial,
}

impl Transcript {
    /// Determines what the transcript of an answer contains. The user's turns are there if an event is one, or if the runner asked
    /// the agent once, with an input that is known.
    pub(super) fn new(loaded: &LoadedAnswer, asked: &CaseInput<'_>) -> Self {
        let is_turn = |body: &EventBody| match body {
            EventBody::Unknown { kind, fields } => case_input::is_user_turn(kind, fields),
            _ => false,
        };
        if loaded.case.transcript_is_complete {
            Transcript::Complete
        } else if asked.is_all_that_was_asked() {
            Transcript::Asked
        } else if loaded.answer.events.iter().any(|event| is_turn(&event.body)) {
            Transcript::WithUser
        } else {
            Transcript::Partial
        }
    }
}
