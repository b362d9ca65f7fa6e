//! The tokens of each model call as bars, in the order of the calls.

use counterproof_sessions::event::{EventBody, LlmCall, SessionEvent};

use super::overview::elapsed;
use crate::view::display::number;

/// The drawing area.
const WIDTH: u64 = 1000;
const HEIGHT: u64 = 120;

/// More calls than this share bars.
const MAX_BARS: usize = 250;

#[derive(Debug)]
pub(super) struct TokenChart {
    pub(super) bars: Vec<BarView>,
    /// The number of tokens at the top.
    pub(super) top: String,
    /// The times of the first, a middle and the last call.
    pub(super) times: Vec<String>,
    /// What the chart shows, for screen readers.
    pub(super) label: String,
}

/// One call, or several adjacent ones.
#[derive(Debug)]
pub(super) struct BarView {
    /// The record that it leads to.
    pub(super) anchor: u64,
    pub(super) title: String,
    pub(super) x: String,
    pub(super) width: String,
    /// From below: read from a cache, other prompt tokens, completion.
    pub(super) parts: Vec<BarPart>,
    pub(super) is_failed: bool,
}

#[derive(Debug)]
pub(super) struct BarPart {
    pub(super) class: &'static str,
    pub(super) y: String,
    pub(super) height: String,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tokens {
    cached: u64,
    prompt: u64,
    completion: u64,
}

impl Tokens {
    fn sum(self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }
}

/// The number of the record of a model call, the record, and its tokens if they are known.
type Call<'a> = (u64, &'a SessionEvent, Option<Tokens>);

impl TokenChart {
    /// Returns `None` if no call states its tokens.
    pub(super) fn new(events: &[SessionEvent]) -> Option<Self> {
        let call = |(anchor, event): (u64, &'_ SessionEvent)| match &event.body {
            EventBody::LlmCall(call) => Some((anchor, tokens(call))),
            _ => None,
        };
        let calls: Vec<Call<'_>> = (1_u64..)
            .zip(events)
            .filter_map(|(anchor, event)| call((anchor, event)).map(|(anchor, tokens)| (anchor, event, tokens)))
            .collect();
        if calls.iter().all(|(_, _, tokens)| tokens.is_none()) {
            return None;
        }
        let group = calls.len().div_ceil(MAX_BARS).max(1);
        let groups: Vec<_> = calls.chunks(group).collect();
        let largest = |group: &[Call<'_>]| {
            group.iter().filter_map(|(_, _, tokens)| *tokens).max_by_key(|tokens| tokens.sum()).unwrap_or_default()
        };
        let top = groups.iter().map(|group| largest(group).sum()).max().unwrap_or_default().max(1);
        let step = WIDTH as f64 / groups.len() as f64;
        let begin = events.first().map(|event| event.timestamp).unwrap_or_default();
        let bar = |(index, group): (usize, &&[Call<'_>])| {
            let tokens = largest(group);
            let (anchor, first, known) = group[0];
            let mut title =
                format!("model call {} at {}: ", index * group.len().max(1) + 1, elapsed(begin, first.timestamp));
            if groups.len() < calls.len() {
                title = format!("{} model calls from {}, the largest: ", group.len(), elapsed(begin, first.timestamp));
            }
            let tokens_text = match known.or((tokens.sum() > 0).then_some(tokens)) {
                Some(_) => format!(
                    "{} prompt tokens ({} from a cache), {} completion tokens",
                    number(tokens.prompt),
                    number(tokens.cached),
                    number(tokens.completion)
                ),
                None => "tokens not known".to_owned(),
            };
            title.push_str(&tokens_text);
            BarView {
                anchor,
                title,
                x: format!("{:.2}", index as f64 * step),
                width: format!("{:.2}", (step * 0.8).min(40.0)),
                parts: parts(tokens, top),
                is_failed: group.iter().any(|(_, event, _)| event.error.is_some()),
            }
        };
        let bars: Vec<_> = groups.iter().enumerate().map(bar).collect();
        let time = |at: usize| calls.get(at).map(|(_, event, _)| elapsed(begin, event.timestamp));
        let mut times: Vec<_> = [0, calls.len() / 2, calls.len() - 1].into_iter().filter_map(time).collect();
        times.dedup();
        let label = format!("Tokens of {} model calls; the largest has {}", calls.len(), number(top));
        Some(Self { bars, top: number(top), times, label })
    }
}

/// Returns the tokens of a model call, if they are known.
fn tokens(call: &LlmCall) -> Option<Tokens> {
    let usage = call.response.as_ref()?.usage?;
    let prompt = usage.prompt_tokens.unwrap_or_default();
    Some(Tokens {
        prompt,
        // A part of the prompt, which some sources state as more than the whole.
        cached: usage.cached_tokens.unwrap_or_default().min(prompt),
        completion: usage.completion_tokens.unwrap_or_default(),
    })
}

fn parts(tokens: Tokens, top: u64) -> Vec<BarPart> {
    let values =
        [("cached", tokens.cached), ("prompt", tokens.prompt - tokens.cached), ("completion", tokens.completion)];
    let mut below = 0.0;
    let part = |(class, value): (&'static str, u64)| {
        // Every part that is there can be seen.
        let height = if value == 0 { 0.0 } else { (value as f64 / top as f64 * HEIGHT as f64).max(1.0) };
        below += height;
        (height > 0.0).then(|| BarPart {
            class,
            y: format!("{:.2}", (HEIGHT as f64 - below).max(0.0)),
            height: format!("{height:.2}"),
        })
    };
    values.into_iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use counterproof_sessions::event::{LlmResponse, Usage};
    use jiff::Timestamp;

    use super::*;

    fn calls(usages: impl IntoIterator<Item = Option<Usage>>) -> Vec<SessionEvent> {
        let event = |usage| {
            let response = Some(LlmResponse { usage, ..LlmResponse::default() });
            SessionEvent::captured(
                Timestamp::UNIX_EPOCH,
                EventBody::LlmCall(LlmCall { response, ..LlmCall::default() }),
            )
        };
        usages.into_iter().map(event).collect()
    }

    #[test]
    fn many_calls_share_bars_and_unknown_tokens_have_none() {
        assert!(TokenChart::new(&calls([None])).is_none());
        let usage = |prompt| Some(Usage::new(Some(prompt), Some(1), Some(u64::MAX)));
        let chart = TokenChart::new(&calls((0..1000).map(usage))).unwrap();
        assert_eq!(chart.bars.len(), 250);
        assert_eq!(chart.top, number(1000));
        let largest = TokenChart::new(&calls([usage(u64::MAX), None])).unwrap();
        assert!(largest.bars[1].title.contains("not known"), "{}", largest.bars[1].title);
    }
}
