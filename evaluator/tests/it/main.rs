//! The crate as another crate uses it.

mod answer_texts;
mod asked_the_same;
mod calibration;
mod codes;
mod deterministic;
mod error_rates;
mod evidence;
mod expectations;
mod failed_calls;
mod grounding;
mod grounding_labels;
mod hand_overs;
#[expect(dead_code, reason = "the tests of the report use the rest of the kit")]
mod kit;
mod labelled;
mod mutation;
mod outages;
mod parting;
mod properties;
mod repeats;
mod right_colour;
mod rules;
mod severity;
mod shard_facts;
mod signals;
mod simulation;
mod turns;
mod usage;
mod verdicts;
