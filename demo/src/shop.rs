//! The data of the shop, and the tools that read and change it. Changes are confirmed but not stored, thus every case starts
//! from the same data.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// Customers, orders, stock, slots, products and policies.
static RECORDS: LazyLock<Value> =
    // The data is part of the program, and the tests read it, so the default is never used.
    LazyLock::new(|| serde_json::from_str(include_str!("../data/shop.json")).unwrap_or_default());

/// The result of a tool call and its latency.
pub(crate) struct ToolAnswer {
    pub(crate) result: Result<Value, Value>,
    pub(crate) latency_ms: u64,
}

pub(crate) struct Document {
    pub(crate) id: &'static str,
    pub(crate) text: &'static str,
}

pub(crate) fn run(tool: &str, args: &Value) -> ToolAnswer {
    let (result, latency_ms) = match tool {
        "get_customer" => (record("customers", args, "customer_id"), 18),
        "get_order" => (record("orders", args, "order_id"), 24),
        "check_stock" => (record("stock", args, "sku"), 15),
        "list_orders" => (Ok(order_history(text(args, "customer_id"))), 310),
        "list_slots" => (Ok(json!({ "slots": RECORDS["slots"] })), 42),
        "find_products" => (Ok(json!({ "products": RECORDS["products"] })), 55),
        "verify_identity" => (verify(args), 97),
        "cancel_order" => (Ok(json!({ "order_id": args["order_id"], "status": "cancelled" })), 61),
        "refund_order" => (refund(args), 83),
        "update_address" => (Ok(json!({ "order_id": args["order_id"], "address": args["address"] })), 58),
        "send_email" => (Ok(json!({ "message_id": "M-9001", "to": args["to"] })), 120),
        // An answer and not a panic: the agent must record what a real one would.
        _ => (unknown(tool), 1),
    };
    ToolAnswer { result, latency_ms }
}

pub(crate) fn unknown(tool: &str) -> Result<Value, Value> {
    Err(json!({ "code": "no_such_tool", "message": format!("there is no tool called {tool}") }))
}

/// Returns the result of `send_email` while the mail server is down.
pub(crate) fn send_email_during_outage() -> ToolAnswer {
    let error = json!({ "code": "smtp_451", "message": "mailbox temporarily unavailable, try again later" });
    ToolAnswer { result: Err(error), latency_ms: 2050 }
}

/// Returns the policies that contain a word of the query, in the order of the handbook.
pub(crate) fn search_policies(query: &str) -> Vec<Document> {
    // The words of the handbook are in lower case.
    let query = query.to_lowercase();
    let policies = RECORDS["policies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let speaks = |policy: &&'static Value| {
        policy["words"]
            .as_array()
            .is_some_and(|words| words.iter().any(|word| query.contains(word.as_str().unwrap_or("?"))))
    };
    policies
        .iter()
        .filter(speaks)
        .map(|policy| Document { id: text(policy, "doc_id"), text: text(policy, "text") })
        .collect()
}

fn record(table: &str, args: &Value, key: &str) -> Result<Value, Value> {
    let id = text(args, key);
    match &RECORDS[table][id] {
        // Indexing a missing key gives null.
        Value::Null => Err(json!({ "code": "not_found", "message": format!("no {table} entry {id}") })),
        found => Ok(found.clone()),
    }
}

fn refund(args: &Value) -> Result<Value, Value> {
    let order = record("orders", args, "order_id")?;
    Ok(json!({ "order_id": order["order_id"], "refunded": args["amount"], "currency": order["currency"] }))
}

fn verify(args: &Value) -> Result<Value, Value> {
    let customer = record("customers", args, "customer_id")?;
    Ok(json!({ "customer_id": customer["customer_id"], "verified": true, "method": "account e-mail" }))
}

/// Returns the orders of a business customer in one year: more than an artifact holds inline.
fn order_history(customer_id: &str) -> Value {
    const PRODUCTS: [(&str, u64); 5] =
        [("oak desk", 310), ("reading lamp", 50), ("wool rug", 89), ("two-seat sofa", 450), ("bookcase", 175)];
    let order = |number: u64| {
        let (name, price) = PRODUCTS[usize::try_from(number).unwrap_or(0) % PRODUCTS.len()];
        // From the number, so that the history is long and the same in every run.
        let quantity = 1 + number % 4;
        json!({
            "order_id": format!("B-{}", 5000 + number),
            "placed_on": format!("2025-{:02}-{:02}", 1 + number / 8, 1 + 3 * (number % 8)),
            "items": [{ "name": name, "price": price, "quantity": quantity }],
            "total": price * quantity,
            "currency": "EUR",
            "status": "delivered",
        })
    };
    // Enough for a payload that the run stores as an asset.
    json!({ "customer_id": customer_id, "orders": (0..96).map(order).collect::<Vec<_>>() })
}

/// Returns a text field, or an empty string if there is none.
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}
