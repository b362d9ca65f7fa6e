//! The time of both sides on one axis: a long bar for the whole, a short mark for each read, a tall red one for each write, a dot for
//! the answer. Left out where the recorded times cannot be.

use std::fmt::Write as _;

use counterproof_artifact::{EventBody, Side};
use counterproof_evaluator::{LoadedAnswer, MadeCall};

use super::context::CaseContext;
use crate::view::display;

/// Marks of one kind that are nearer than this are one mark with a count.
const NEAR: f64 = 9.0;

/// Most calls of a side that are drawn.
const CALLS_DRAWN: usize = 400;

#[derive(Debug, Clone)]
pub(crate) struct WaterfallView {
    /// What the drawing shows, in words.
    pub(crate) label: String,
    /// For a wide and for a narrow page.
    pub(crate) drawings: Vec<Drawing>,
}

#[derive(Debug, Clone)]
pub(crate) struct Drawing {
    /// The CSS class: `wide` or `narrow`.
    pub(crate) class: &'static str,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) ticks: Vec<Tick>,
    pub(crate) sides: Vec<SideDrawing>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tick {
    pub(crate) x: u32,
    pub(crate) text: String,
    pub(crate) anchor: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) struct SideDrawing {
    pub(crate) name: &'static str,
    /// The middle of its bar.
    pub(crate) y: u32,
    pub(crate) x: u32,
    pub(crate) width: u32,
    pub(crate) end: u32,
    pub(crate) answered: String,
    pub(crate) marks: Vec<MarkView>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MarkView {
    pub(crate) x: u32,
    pub(crate) is_write: bool,
    /// `cancel_reservation after 6.4 s`
    pub(crate) title: String,
    /// `×3`; empty for a single call.
    pub(crate) count: String,
}

/// The calls of a side, in milliseconds since its start.
#[derive(Debug, Clone, PartialEq)]
struct SideTimes {
    name: &'static str,
    calls: Vec<TimedCall>,
    answered: f64,
}

#[derive(Debug, Clone, PartialEq)]
struct TimedCall {
    at: f64,
    is_write: bool,
    tool: String,
}

/// Calls of one kind that are near each other, from the place of the first.
struct NearCalls<'a> {
    x: f64,
    is_write: bool,
    calls: Vec<&'a TimedCall>,
}

/// The drawing; `None` without times that make sense, and where both sides did the same.
pub(crate) fn view(context: &CaseContext<'_>) -> Option<WaterfallView> {
    if context.case.differences.as_ref().is_some_and(counterproof_evaluator::Differences::is_empty) {
        return None;
    }
    let mut sides = Vec::new();
    for side in Side::BOTH {
        let Some(loaded) = context.answer(side) else { continue };
        sides.push(times(side.as_str(), loaded, context.made.get(side))?);
    }
    let longest = sides.iter().map(|side| side.answered).fold(0.0, f64::max);
    if sides.iter().all(|side| side.calls.is_empty()) || longest <= 0.0 {
        return None;
    }
    let drawings = vec![draw("wide", 1180, 80, longest, &sides), draw("narrow", 350, 62, longest, &sides)];
    Some(WaterfallView { label: label(&sides), drawings })
}

/// The times of a side; `None` if they run backwards or are longer than the whole took.
fn times(name: &'static str, loaded: &LoadedAnswer, made: &[MadeCall]) -> Option<SideTimes> {
    let events = &loaded.answer.events;
    let (first, last) = (events.first()?.ts.as_f64(), events.last()?.ts.as_f64());
    if !events.is_sorted_by(|a, b| a.ts.as_f64() <= b.ts.as_f64()) {
        return None;
    }
    let attempts = &loaded.case.attempts;
    let took =
        attempts.last().and_then(|attempt| attempt.latency_ms.as_ref()).map(counterproof_artifact::Millis::as_f64);
    let tools: f64 = events
        .iter()
        .map(|event| match &event.body {
            EventBody::ToolResult(result) => result.latency_ms.as_f64(),
            _ => 0.0,
        })
        .sum();
    let took = took.unwrap_or(last - first);
    if took < last - first || took < tools || !took.is_finite() {
        return None;
    }
    // The answer is the end of the attempt, and the clock of the events may be another one.
    let start = last - took;
    let call = |made: &MadeCall| {
        let event = &events[made.call?];
        let tool = display::visible(&event.tool_call()?.tool);
        Some(TimedCall { at: event.ts.as_f64() - start, is_write: made.is_write, tool })
    };
    Some(SideTimes { name, calls: made.iter().filter_map(call).take(CALLS_DRAWN).collect(), answered: took })
}

fn label(sides: &[SideTimes]) -> String {
    let mut label = String::new();
    for side in sides {
        let writes = side.calls.iter().filter(|call| call.is_write).count();
        let _ = write!(
            label,
            "{}: {} reads, {writes} writes, answer after {}. ",
            side.name,
            side.calls.len() - writes,
            display::duration(side.answered)
        );
    }
    label.trim_end().to_owned()
}

fn draw(class: &'static str, width: u32, left: u32, longest: f64, sides: &[SideTimes]) -> Drawing {
    let step = step(longest, if width > 500 { 6.0 } else { 3.0 });
    let end = (longest / step).ceil() * step;
    let room = f64::from(width - left - 8);
    let x = |millis: f64| f64::from(left) + millis.clamp(0.0, end) / end * room;
    let count = (end / step).round();
    let ticks = (0..=whole(count)).map(|index| {
        let at = f64::from(index) * step;
        Tick {
            x: whole(x(at)),
            text: if step >= 1000.0 { format!("{} s", at / 1000.0) } else { format!("{at} ms") },
            anchor: if index == whole(count) { "end" } else { "middle" },
        }
    });
    Drawing {
        class,
        width,
        height: 24 + 54 * u32::try_from(sides.len()).unwrap_or(2),
        ticks: ticks.collect(),
        sides: sides
            .iter()
            .zip(0..)
            .map(|(side, index)| SideDrawing {
                name: side.name,
                y: 36 + 54 * index,
                x: left,
                width: whole(x(side.answered)) - left,
                end: whole(x(side.answered)),
                answered: format!("answer after {}", display::duration(side.answered)),
                marks: marks(side, &x),
            })
            .collect(),
    }
}

/// The marks of a side. Calls of one kind that are near each other are one mark.
fn marks(side: &SideTimes, x: &impl Fn(f64) -> f64) -> Vec<MarkView> {
    let mut groups: Vec<NearCalls<'_>> = Vec::new();
    for call in &side.calls {
        let at = x(call.at);
        match groups.iter_mut().rev().find(|group| group.is_write == call.is_write) {
            Some(group) if at - group.x < NEAR => group.calls.push(call),
            _ => groups.push(NearCalls { x: at, is_write: call.is_write, calls: vec![call] }),
        }
    }
    let mark = |group: NearCalls<'_>| {
        let (first, count) = (group.calls[0], group.calls.len());
        let named = if count == 1 { first.tool.clone() } else { format!("{count} calls") };
        MarkView {
            x: whole(group.x),
            is_write: group.is_write,
            title: format!("{named} after {}", display::duration(first.at)),
            count: if count == 1 { String::new() } else { format!("×{count}") },
        }
    };
    groups.into_iter().map(mark).collect()
}

/// The distance of the marks of the axis: 1, 2 or 5 times a power of ten.
fn step(longest: f64, most: f64) -> f64 {
    let magnitude = 10_f64.powf((longest / most).max(1.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
    steps.into_iter().find(|step| longest / step <= most).unwrap_or(10.0 * magnitude)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a drawing of bounded width")]
fn whole(place: f64) -> u32 {
    place.round().clamp(0.0, 10_000.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_within_the_drawing_and_near_calls_are_one_mark() {
        let call = |at: f64, is_write| TimedCall { at, is_write, tool: "refund".to_owned() };
        let side = SideTimes {
            name: "new",
            calls: vec![call(0.0, false), call(10.0, false), call(6_400.0, true), call(9_000.0, true)],
            answered: 9_200.0,
        };
        for (class, width, left) in [("wide", 1180, 80), ("narrow", 350, 62)] {
            let drawing = draw(class, width, left, 24_300.0, std::slice::from_ref(&side));
            let drawn = &drawing.sides[0];
            assert!(drawing.ticks.iter().all(|tick| (left..width).contains(&tick.x)), "{drawing:?}");
            assert!(drawn.marks.iter().all(|mark| (left..=drawn.end).contains(&mark.x)), "{drawing:?}");
            assert!(drawn.end < width && drawing.ticks.len() <= 8);
            assert_eq!((drawn.marks[0].count.as_str(), drawn.marks.len()), ("×2", 3));
            assert_eq!(drawn.marks[1].title, "refund after 6.4 s");
        }
    }

    #[test]
    fn the_axis_has_a_few_round_numbers() {
        for (longest, most, expected) in
            [(24_300.0, 6.0, 5_000.0), (900.0, 6.0, 200.0), (3.0, 6.0, 1.0), (61_000.0, 3.0, 50_000.0)]
        {
            assert_eq!(step(longest, most).to_bits(), f64::to_bits(expected), "{longest}");
        }
    }
}
