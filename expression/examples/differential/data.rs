//! Random JSON documents with fields of known types.

use fastrand::Rng;
use serde_json::{Map, Value as Json, json};

const WORDS: [&str; 12] = ["", "a", "ab", "abc", "Lamp", "äöü", "a,b", "5", "-7", " x ", "😀b", "aXbX"];

pub(crate) fn word(rng: &mut Rng) -> &'static str {
    rng.choice(WORDS).unwrap_or_default()
}

/// Returns the document. Some fields are missing in some documents.
pub(crate) fn document(rng: &mut Rng) -> Json {
    let mut fields = Map::new();
    fields.insert("n".to_owned(), json!(rng.i64(-9..100)));
    fields.insert("k".to_owned(), json!(rng.i64(0..4)));
    fields.insert("d".to_owned(), json!(double(rng)));
    fields.insert("s".to_owned(), json!(word(rng)));
    fields.insert("t".to_owned(), json!(word(rng)));
    fields.insert("b".to_owned(), json!(rng.bool()));
    fields.insert("z".to_owned(), Json::Null);
    fields.insert("l".to_owned(), (0..rng.usize(0..5)).map(|_| json!(rng.i64(-3..6))).collect());
    fields.insert("ls".to_owned(), (0..rng.usize(0..4)).map(|_| json!(word(rng))).collect());
    fields.insert("lo".to_owned(), (0..rng.usize(0..4)).map(|_| item(rng)).collect());
    fields.insert("m".to_owned(), item(rng));
    fields.retain(|_, _| rng.u8(0..20) > 0);
    Json::Object(fields)
}

pub(crate) fn double(rng: &mut Rng) -> f64 {
    rng.choice([0.0, 0.5, 1.0, -1.5, 2.25, 100.0, 1e-3, 12345.678, -7.0]).unwrap_or_default()
}

fn item(rng: &mut Rng) -> Json {
    let mut item = Map::new();
    item.insert("s".to_owned(), json!(word(rng)));
    item.insert("n".to_owned(), json!(rng.i64(-2..5)));
    if rng.bool() {
        item.insert("b".to_owned(), json!(rng.bool()));
    }
    Json::Object(item)
}
