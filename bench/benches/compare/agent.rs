//! An agent that answers questions about orders, made up: what its artifacts hold, for each case and side.
//!
//! Both sides of a case are made from the same numbers, so that they mean the same. Times, latencies and what the case is
//! chosen to differ in come from numbers of their own.

use counterproof_artifact::Side;
use serde_json::{Map, Value, json};

use fastrand::Rng;

/// In what the sides of a case differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In nothing but times.
    Identical,
    /// In what the agent says.
    Output,
    /// In what it wants done, and in one call on the way.
    Actions,
}

/// One side of one case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) seed: u64,
    pub(crate) index: usize,
    pub(crate) side: Side,
}

/// A large payload that is kept beside its artifact.
#[derive(Debug)]
pub(crate) struct Payload {
    /// The event that links to it.
    pub(crate) event: usize,
    /// What the tool returned.
    pub(crate) value: Value,
}

const NAMES: [&str; 8] = ["Ada", "Bela", "Chidi", "Dara", "Emil", "Farah", "Goran", "Hana"];
const ARTICLES: [&str; 8] = ["lamp", "kettle", "desk chair", "tent", "rucksack", "keyboard", "bicycle pump", "atlas"];
const CITIES: [&str; 6] = ["Lisbon", "Oslo", "Nairobi", "Quito", "Osaka", "Zagreb"];
const TOOLS: [&str; 6] =
    ["get_order", "find_customer", "check_stock", "track_parcel", "list_payments", "read_policy_section"];
const STATES: [&str; 5] = ["packed", "sent", "delivered", "returned", "waiting for payment"];
const ACTIONS: [&str; 4] = ["refund_order", "send_replacement", "change_address", "cancel_order"];
const SENTENCES: [&str; 12] = [
    "I have looked at your order and at what was paid for it.",
    "The parcel left our warehouse in good time and was handed to the carrier.",
    "According to the carrier it is still on its way and should reach you within the week.",
    "Our policy allows a return within thirty days, as long as the article is complete.",
    "Because the article arrived damaged, you do not have to send it back.",
    "The amount goes back to the card that you paid with, which takes up to five working days.",
    "A colleague will look at the photographs that you sent and confirm the decision.",
    "If you would rather have a replacement, tell us before the end of the day.",
    "The address on the order has been compared with the one in your account.",
    "There is nothing else that you need to do for now.",
    "You will receive a message as soon as the state of the order changes.",
    "Please keep the packaging until the matter is closed.",
];

/// What a case is chosen to differ in: of a hundred, eighty in nothing, fifteen in the output, five in the actions.
pub(crate) fn kind(seed: u64, index: usize) -> Kind {
    match random_of(&[seed, index as u64, 1]).u64(..100) {
        0..80 => Kind::Identical,
        80..95 => Kind::Output,
        _ => Kind::Actions,
    }
}

/// True where the runner got no answer: one in two hundred of the baseline's, one in a hundred of new's.
pub(crate) fn fails(part: Part) -> bool {
    let (number, of) = if part.side == Side::Baseline { (2, 200) } else { (3, 100) };
    random_of(&[part.seed, part.index as u64, number]).u64(..of) == 0
}

/// An answer, and the payload that is too large to stand in it, if there is one.
pub(crate) fn answer(part: Part, case_id: &str) -> (Value, Option<Payload>) {
    let mut common = random_of(&[part.seed, part.index as u64, 4]);
    let mut clock = Clock::of(part);
    let changed = if part.side == Side::New { kind(part.seed, part.index) } else { Kind::Identical };

    let order = format!("W{}", common.u64(100_000..=999_999));
    let mut events = Vec::new();
    let steps = common.u64(4..=7);
    let large = (common.u64(..20) == 0).then(|| common.u64(..steps));
    let mut payload = None;
    for step in 0..steps {
        let tool = TOOLS[common.usize(..TOOLS.len())];
        let call_id = format!("call_{step}");
        let mut args = json!({"order_id": order, "fields": ["state", "items", "payments"], "page": step + 1});
        if changed == Kind::Actions && step == steps - 1 {
            args["page"] = json!(step + 2);
        }
        events.push(json!({
            "type": "tool_call", "ts": clock.tick(), "call_id": call_id, "tool": tool, "args": args,
            "risk_level": "low", "risk_tags": [],
        }));
        let mut result = json!({
            "type": "tool_result", "ts": clock.tick(), "call_id": call_id, "status": "ok", "latency_ms": clock.latency(),
        });
        if large == Some(step) {
            let records: Vec<_> = (0..40).map(|_| record(&mut common, &order)).collect();
            payload = Some(Payload { event: events.len(), value: json!({"records": records}) });
        } else {
            result["payload_summary"] = record(&mut common, &order);
        }
        events.push(result);
    }
    let query = format!(
        "{} for a {}",
        ["return policy", "delivery times"][common.usize(..2)],
        ARTICLES[common.usize(..ARTICLES.len())]
    );
    events.push(
        json!({"type": "retrieval", "ts": clock.tick(), "query": query, "doc_ids": ["policy_returns_v3", "faq_12"]}),
    );

    let text = output(&mut common, changed, part);
    let content = json!({"content_type": "text", "content": text});
    events.push(json!({"type": "final_output", "ts": clock.tick(), "content_type": "text", "content": text}));
    let actions = actions(&mut common, changed, &order, steps);
    let artifact = json!({
        "schema_version": "case.v1", "case_id": case_id, "version": part.side, "status": "ok",
        "workflow_id": "order_questions",
        "attempts": [{"attempt": 1, "started_at": clock.started_at(), "latency_ms": clock.latency(), "outcome": "ok"}],
        "proposed_actions": actions, "events": events, "final_output": content,
    });
    (artifact, payload)
}

/// A runner failure, but for the links to its body.
pub(crate) fn failure(part: Part, case_id: &str) -> Value {
    let mut clock = Clock::of(part);
    let attempt = json!({
        "attempt": 1, "started_at": clock.started_at(), "latency_ms": clock.latency(), "outcome": "runner_error",
        "error_class": "http_error",
    });
    json!({
        "schema_version": "case.v1", "case_id": case_id, "version": part.side, "status": "runner_error",
        "workflow_id": "order_questions", "attempts": [attempt],
        "runner_failure": {
            "class": "http_error", "url": "http://agent.example/run-case", "attempt": 1, "status": 500,
            "status_text": "Internal Server Error", "error_name": "server_error", "latency_ms": clock.latency(),
        },
    })
}

/// The body of an answer that was none.
pub(crate) fn failure_body(part: Part) -> Value {
    let mut random = random_of(&[part.seed, part.index as u64, 5]);
    let frames: Vec<_> =
        (0..12).map(|line| format!("{} (agent.py:{})", TOOLS[random.usize(..TOOLS.len())], 100 + line)).collect();
    json!({"error": "internal_error", "message": "the tool did not answer in time", "stack": frames})
}

/// What a tool knows of an order.
fn record(random: &mut Rng, order: &str) -> Value {
    let items: Vec<_> = (0..random.u64(1..=3))
        .map(|_| {
            let cents = random.u64(500..=20_000);
            json!({
                "article": ARTICLES[random.usize(..ARTICLES.len())], "quantity": random.u64(1..=4),
                "price": cents as f64 / 100.0,
            })
        })
        .collect();
    json!({
        "order_id": order, "customer": NAMES[random.usize(..NAMES.len())], "city": CITIES[random.usize(..CITIES.len())],
        "state": STATES[random.usize(..STATES.len())], "items": items, "paid": random.u64(..2) == 0,
    })
}

fn output(common: &mut Rng, changed: Kind, part: Part) -> String {
    let mut sentences: Vec<_> = (0..common.u64(4..=9)).map(|_| SENTENCES[common.usize(..SENTENCES.len())]).collect();
    if changed == Kind::Output {
        let mut own = random_of(&[part.seed, part.index as u64, 6]);
        let place = own.usize(..sentences.len());
        sentences[place] = "We are sorry for the trouble, and have put the matter right.";
    }
    sentences.chunks(3).map(|paragraph| paragraph.join(" ")).collect::<Vec<_>>().join("\n\n")
}

fn actions(common: &mut Rng, changed: Kind, order: &str, steps: u64) -> Vec<Value> {
    let count = common.u64(1..=2);
    let mut actions: Vec<_> = (0..count)
        .map(|number| {
            let tool = ACTIONS[common.usize(..ACTIONS.len())];
            let mut params = Map::new();
            params.insert("order_id".to_owned(), json!(order));
            params.insert("amount".to_owned(), json!(common.u64(5..=200)));
            params.insert("reason".to_owned(), json!(SENTENCES[common.usize(..SENTENCES.len())]));
            let risk = ["low", "medium", "high"][common.usize(..3)];
            json!({
                "action_id": format!("action_{number}"), "action_type": "write", "tool_name": tool, "params": params,
                "risk_level": risk, "risk_tags": ["money"],
                "evidence_refs": [
                    {"kind": "tool_result", "call_id": format!("call_{}", common.u64(..steps))},
                    {"kind": "retrieval_doc", "doc_id": "policy_returns_v3"},
                ],
            })
        })
        .collect();
    if changed == Kind::Actions {
        actions[0]["params"]["amount"] = json!(common.u64(201..=400));
    }
    actions
}

/// The times of one side of a case.
struct Clock {
    random: Rng,
    now: u64,
}

impl Clock {
    fn of(part: Part) -> Self {
        let side = u64::from(part.side == Side::New);
        // 2026-03-03, with each case a second after the one before.
        let now = 1_772_524_800_000 + 86_400_000 * side + 1_000 * part.index as u64;
        Self { random: random_of(&[part.seed, part.index as u64, 7 + side]), now }
    }

    /// The time of the next step, in milliseconds since 1970.
    fn tick(&mut self) -> u64 {
        self.now += self.random.u64(5..=900);
        self.now
    }

    fn latency(&mut self) -> u64 {
        self.random.u64(3..=4_000)
    }

    fn started_at(&mut self) -> String {
        let second = self.random.u64(..60);
        format!("2026-03-03T08:{:02}:{second:02}.{:03}Z", self.random.u64(..60), self.random.u64(..1_000))
    }
}

/// Returns random numbers for a part: other parts get other numbers, whatever is generated before them.
fn random_of(parts: &[u64]) -> Rng {
    parts.iter().fold(Rng::with_seed(0), |mut random, part| Rng::with_seed(random.u64(..) ^ part))
}
