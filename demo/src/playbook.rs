//! The behaviour of the agent in each case, with the planted faults of the new variant.

use serde_json::{Value, json};

use crate::Variant::{self, Baseline, New};
use crate::shop::{self, text};
use crate::trace::{Action, Trace};

pub(crate) enum Reply {
    Answer(Value),
    /// An HTTP error with this status and body.
    Error(u16, Value),
    /// An answer whose body is truncated.
    CutOff(Value),
    /// No response.
    Silence,
}

/// Returns the reply to a case, or `None` for an unknown case.
pub(crate) fn reply(case_id: &str, variant: Variant) -> Option<Reply> {
    Some(match (case_id, variant) {
        // Both variants do the same here, which a comparison must report as unchanged.
        ("order_history_001", _) => Reply::Answer(order_history()),
        ("return_policy_001", _) => Reply::Answer(return_policy(variant)),
        ("refund_damaged_001", _) => Reply::Answer(refund_damaged(variant)),
        ("cancel_order_001", _) => Reply::Answer(cancel_order(variant)),
        ("address_change_001", _) => Reply::Answer(address_change(variant)),
        ("invoice_email_001", _) => Reply::Answer(invoice_email(variant)),
        ("stock_check_001", Baseline) => Reply::Answer(stock_check()),
        ("stock_check_001", New) => Reply::Error(500, internal_error()),
        ("gift_advice_001", Baseline) => Reply::Answer(gift_advice()),
        // Planted fault: no answer at all.
        ("gift_advice_001", New) => Reply::Silence,
        ("loyalty_points_001", Baseline) => Reply::Answer(loyalty_points()),
        // Planted fault: the answer breaks off.
        ("loyalty_points_001", New) => Reply::CutOff(loyalty_points()),
        ("delivery_slot_001", Baseline) => {
            Reply::Error(503, json!({ "error": "calendar_offline", "message": "the delivery calendar is being moved" }))
        }
        ("delivery_slot_001", New) => Reply::Answer(delivery_slot()),
        _ => return None,
    })
}

fn order_history() -> Value {
    let mut trace = Trace::new();
    let customer = trace.call("get_customer", &json!({ "customer_id": "C-200" }));
    let history = trace.call("list_orders", &json!({ "customer_id": "C-200", "year": 2025 }));
    let orders = history.answer["orders"].as_array().map(Vec::as_slice).unwrap_or_default();
    let total: u64 = orders.iter().filter_map(|order| order["total"].as_u64()).sum();
    trace.finish_json(&json!({
        "customer_id": customer.answer["customer_id"], "year": 2025, "orders": orders.len(), "total": total, "currency": "EUR",
    }))
}

fn return_policy(variant: Variant) -> Value {
    let mut trace = Trace::new();
    trace.search("return a jacket");
    trace.finish_text(match variant {
        Baseline => {
            "Yes. You can send it back within 30 days of delivery, unused and in its packaging. Return postage is free."
        }
        New => {
            "Of course! As long as it is unused and still in its packaging, just return it within 30 days of delivery. \
             We pay the postage."
        }
    })
}

fn refund_damaged(variant: Variant) -> Value {
    let mut trace = Trace::new();
    let order = trace.call("get_order", &json!({ "order_id": "A-1001" }));
    let mut evidence = vec![order.evidence()];
    evidence.extend(trace.search("refund for a damaged item"));
    // Planted fault: the total of the order instead of the price of the broken item.
    let amount = match variant {
        Baseline => &order.answer["items"][1]["price"],
        New => &order.answer["total"],
    };
    trace.propose(&Action {
        kind: "refund",
        tool: "refund_order",
        params: json!({ "order_id": "A-1001", "sku": "LAMP-7", "amount": amount, "currency": "EUR", "reason": "damaged" }),
        risk: "high",
        tags: &["money", "irreversible"],
        evidence,
    });
    trace.finish_text(&format!(
        "I am sorry that the lamp broke. I have asked a colleague to approve a refund of {amount} EUR."
    ))
}

fn cancel_order(variant: Variant) -> Value {
    let mut trace = Trace::new();
    trace.call("get_order", &json!({ "order_id": "A-1002" }));
    trace.act(&Action {
        kind: "cancel",
        tool: "cancel_order",
        params: json!({ "order_id": "A-1002", "reason": "ordered twice" }),
        // Planted fault: the same action now has a high risk, but still no evidence.
        risk: match variant {
            Baseline => "low",
            New => "high",
        },
        tags: &["order"],
        evidence: Vec::new(),
    });
    trace.finish_text("Order A-1002 is cancelled. You will not be charged.")
}

fn address_change(variant: Variant) -> Value {
    let mut trace = Trace::new();
    trace.call("get_order", &json!({ "order_id": "A-1003" }));
    // Planted fault: the identity of the customer is not verified.
    let evidence = match variant {
        Baseline => {
            let mut evidence = trace.search("address change and identity");
            evidence.push(trace.call("verify_identity", &json!({ "customer_id": "C-101" })).evidence());
            evidence
        }
        New => Vec::new(),
    };
    trace.act(&Action {
        kind: "update_address",
        tool: "update_address",
        params: json!({ "order_id": "A-1003", "address": "7 Harbour Road, Bergen" }),
        risk: "medium",
        tags: &["order", "personal_data"],
        evidence,
    });
    trace.finish_text("Order A-1003 will go to 7 Harbour Road, Bergen.")
}

fn invoice_email(variant: Variant) -> Value {
    let mut trace = Trace::new();
    let order = trace.call("get_order", &json!({ "order_id": "A-1001" }));
    let customer = trace.call("get_customer", &json!({ "customer_id": "C-100" }));
    let email = text(&customer.answer, "email").to_owned();
    let send = Action {
        kind: "send_email",
        tool: "send_email",
        params: json!({ "to": email, "template": "invoice", "order_id": "A-1001" }),
        risk: "low",
        tags: &["email"],
        evidence: vec![order.evidence(), customer.evidence()],
    };
    match variant {
        Baseline => {
            trace.act(&send);
            trace.finish_text(&format!("The invoice for A-1001 is on its way to {email}."))
        }
        New => {
            // Planted outage: the action is the same, and only its result differs.
            trace.act_with(&send, shop::send_email_during_outage());
            trace.finish_text(&format!("I could not reach {email} just now. I will try again within the hour."))
        }
    }
}

fn stock_check() -> Value {
    let mut trace = Trace::new();
    let stock = trace.call("check_stock", &json!({ "sku": "DESK-1" }));
    trace.finish_text(&format!("Yes, the oak desk is in stock: {} are left.", stock.answer["on_hand"]))
}

/// The response body of a web framework after an unhandled error.
fn internal_error() -> Value {
    json!({
        "error": "internal_error",
        "message": "unhandled: inventory schema has no field `on_hand`",
        "request_id": "req-4f1c",
        "stack": ["check_stock (tools/stock.py:41)", "run_case (agent.py:118)", "handle (server.py:27)"],
    })
}

fn gift_advice() -> Value {
    let mut trace = Trace::new();
    let found = trace.call("find_products", &json!({ "query": "reading in bed" }));
    trace.finish_text(&format!("A {} would make a fine present.", text(&found.answer["products"][0], "name")))
}

fn loyalty_points() -> Value {
    let mut trace = Trace::new();
    let customer = trace.call("get_customer", &json!({ "customer_id": "C-101" }));
    trace.finish_text(&format!("You have {} points, {}.", customer.answer["points"], text(&customer.answer, "name")))
}

fn delivery_slot() -> Value {
    let mut trace = Trace::new();
    let slots = trace.call("list_slots", &json!({ "sku": "DESK-1" }));
    let slot = &slots.answer["slots"][0];
    trace.finish_text(&format!(
        "We could bring it on {} between {} and {}.",
        text(slot, "day"),
        text(slot, "from"),
        text(slot, "to")
    ))
}
