//! The labelled set of `tests/data/grounding.json`: made-up values that have to be found, and honest ones that must not be.

use counterproof_artifact::Side;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::kit::{Pair, action, answer_of, step};

/// A conversation that ends with a high-risk action, and variants of the params that new gives it.
#[derive(Deserialize)]
struct Scenario {
    name: String,
    /// What the user said.
    said: String,
    /// The calls before the action: tool, arguments and result.
    steps: Vec<(String, Value, Value)>,
    tool: String,
    /// The params of the baseline, all of which have a source.
    params: Map<String, Value>,
    /// Each has one made-up value.
    planted: Vec<Variant>,
    /// Each has only values that the agent was told, rewrote or worked out.
    honest: Vec<Variant>,
}

#[derive(Deserialize)]
struct Variant {
    kind: String,
    /// The params that differ from the baseline.
    set: Map<String, Value>,
    /// What the user said instead.
    said: Option<String>,
}

impl Scenario {
    fn answer(&self, said: &str, params: &Map<String, Value>) -> Value {
        let message = |role: &str, text: &str| json!({"type": "message", "ts": 900, "role": role, "content": text});
        let mut events = vec![message("assistant", "Hello, how can I help?"), message("user", said)];
        for (index, (tool, args, result)) in self.steps.iter().enumerate() {
            let payload = if result.is_array() { json!(result.to_string()) } else { result.clone() };
            events.extend(step(&format!("c{index}"), tool, args, &payload));
        }
        // The agent's own words and the echo of the action are no sources.
        events.push(message("assistant", &format!("I will do this: {}", Value::from(params.clone()))));
        events.extend(step("last", &self.tool, &json!(params), &json!(params)));
        answer_of(&json!({
            "events": events,
            "proposed_actions": [action("a1", &self.tool, &json!(params), &["c0"])],
        }))
    }

    fn new_params(&self, variant: &Variant) -> Map<String, Value> {
        self.params.clone().into_iter().chain(variant.set.clone()).collect()
    }
}

/// Compares all variants and returns those with and those without a made-up value.
#[expect(clippy::unwrap_used, reason = "the data is checked in next to the test")]
fn flagged_and_others(variants: impl Fn(&Scenario) -> &[Variant]) -> [Vec<String>; 2] {
    let scenarios: Vec<Scenario> = serde_json::from_str(include_str!("../data/grounding.json")).unwrap();
    let mut pair = Pair::empty();
    for scenario in &scenarios {
        for (index, variant) in variants(scenario).iter().enumerate() {
            let id = format!("{}-{index}-{}", scenario.name, variant.kind.replace(' ', "_"));
            let said = variant.said.as_deref().unwrap_or(&scenario.said);
            let new = scenario.answer(said, &scenario.new_params(variant));
            pair = pair.with(Side::Baseline, &id, &scenario.answer(&scenario.said, &scenario.params));
            pair = pair.with(Side::New, &id, &new);
        }
    }
    let (flagged, others): (Vec<_>, Vec<_>) = pair.evaluation().cases.into_iter().partition(|case| {
        case.findings.iter().any(|finding| finding.code == "ungrounded-argument" && !finding.in_baseline)
    });
    [flagged, others].map(|cases| cases.into_iter().map(|case| case.case_id.to_string()).collect())
}

#[test]
fn every_planted_value_is_found() {
    let [found, missed] = flagged_and_others(|scenario| &scenario.planted);
    assert_eq!(missed, Vec::<String>::new());
    assert_eq!(found.len(), 60);
}

#[test]
fn at_most_three_of_two_hundred_honest_values_are_flagged() {
    let [flagged, honest] = flagged_and_others(|scenario| &scenario.honest);
    assert_eq!(flagged.len() + honest.len(), 200);
    assert!(flagged.len() <= 3, "{flagged:#?}");
}
