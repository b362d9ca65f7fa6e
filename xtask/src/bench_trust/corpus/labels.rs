//! First divergences and causes, compared with the labels of readers.

use std::io::{self, Write as _};

use serde_json::Value;

use super::pair::{Compared, list};

/// Prints for each label whether the first divergence and the cause are right.
///
/// A first divergence is right if one of its pointers is an accepted one or lies below it, on the same side. A cause is right
/// if its place, up to the first dot or blank, is an accepted place, or if one of its pointers is accepted.
pub(super) fn print(compared: &[Compared], labels: &Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "\ncorpus: first divergences and causes, compared with labels.json\n");
    let (mut divergences, mut causes, mut all) = (0, 0, 0);
    for label in list(labels) {
        let Some(case) = find(compared, label) else { continue };
        let (divergence, root) = (is_right_divergence(case, label), is_right_cause(case, label));
        all += 1;
        divergences += usize::from(divergence);
        causes += usize::from(root);
        let mark = |right: bool| if right { "right" } else { "wrong" };
        let name = format!("{} {}", text(&label["pair"]), text(&label["case_id"]));
        let _ = writeln!(
            out,
            "{name:<40} divergence {:<6} cause {:<6} {}: {}",
            mark(divergence),
            mark(root),
            text(&case["cause"]["code"]),
            text(&case["cause"]["place"])
        );
    }
    let _ = writeln!(out, "first divergences right: {divergences} of {all}; causes right: {causes} of {all}");
}

fn find<'a>(compared: &'a [Compared], label: &Value) -> Option<&'a Value> {
    let runs = &label["runs"];
    let is_labelled = |pair: &&Compared| {
        pair.pair == text(&label["pair"])
            && (runs.is_null() || (text(&runs["baseline"]) == pair.runs[0] && text(&runs["new"]) == pair.runs[1]))
    };
    compared.iter().find(is_labelled)?.case(text(&label["case_id"]))
}

fn is_right_divergence(case: &Value, label: &Value) -> bool {
    is_accepted(&case["first_divergence"]["pointers"], &label["first_divergence"]["accept"])
}

fn is_right_cause(case: &Value, label: &Value) -> bool {
    let (found, accepted) = (&case["cause"], &label["cause"]);
    let place = text(&found["place"]).split(['.', ' ']).next().unwrap_or_default();
    let is_place = !place.is_empty() && list(&accepted["accept_places"]).any(|accepted| text(accepted) == place);
    is_place || is_accepted(&found["pointers"], &accepted["accept_pointers"])
}

fn is_accepted(pointers: &Value, accepted: &Value) -> bool {
    list(pointers).any(|place| {
        list(accepted).any(|accepted| {
            let below = text(&place["pointer"]).strip_prefix(text(&accepted["pointer"]));
            place["side"] == accepted["side"] && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_below_an_accepted_one_is_right() {
        let accepted = json!([{"side": "new", "pointer": "/events/1"}]);
        let is_right = |side: &str, pointer: &str| is_accepted(&json!([{"side": side, "pointer": pointer}]), &accepted);
        assert!(is_right("new", "/events/1") && is_right("new", "/events/1/args"));
        assert!(!is_right("new", "/events/12") && !is_right("baseline", "/events/1"));
    }

    #[test]
    fn a_cause_is_right_by_its_place_up_to_a_dot_or_blank() {
        let label = json!({"cause": {"accept_places": ["refund"], "accept_pointers": []}});
        let is_right = |place: &str| is_right_cause(&json!({"cause": {"place": place, "pointers": []}}), &label);
        assert!(is_right("refund") && is_right("refund.amount") && is_right("refund result"));
        assert!(!is_right("refund_order") && !is_right(""));
    }
}
