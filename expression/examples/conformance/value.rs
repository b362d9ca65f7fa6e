//! Values in the JSON form of the protobuf message `cel.expr.Value`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use counterproof_expression::Computed;
use serde_json::{Map, Number, Value as Json};

const TIMESTAMP: &str = "type.googleapis.com/google.protobuf.Timestamp";
const DURATION: &str = "type.googleapis.com/google.protobuf.Duration";

/// Returns the kind of a value and its content.
fn parts(value: &Json) -> (&str, &Json) {
    value.as_object().and_then(|fields| fields.iter().next()).map_or(("", &Json::Null), |(kind, value)| (kind, value))
}

fn elements(list: &Json) -> &[Json] {
    list["values"].as_array().map_or(&[], Vec::as_slice)
}

fn entries(map: &Json) -> &[Json] {
    map["entries"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns whether a value has messages or enums, which JSON cannot hold.
pub(crate) fn has_messages(value: &Json) -> bool {
    match parts(value) {
        ("objectValue", object) => object["@type"] != TIMESTAMP && object["@type"] != DURATION,
        ("enumValue", _) => true,
        ("listValue", list) => elements(list).iter().any(has_messages),
        ("mapValue", map) => {
            entries(map).iter().any(|entry| has_messages(&entry["key"]) || has_messages(&entry["value"]))
        }
        _ => false,
    }
}

/// Converts a value to JSON, if JSON has its type.
pub(crate) fn to_json(value: &Json) -> Option<Json> {
    Some(match parts(value) {
        ("nullValue", _) => Json::Null,
        ("boolValue" | "stringValue", value) => value.clone(),
        ("int64Value", value) => Json::from(value.as_str()?.parse::<i64>().ok()?),
        ("doubleValue", value) => Json::Number(Number::from_f64(value.as_f64()?)?),
        ("listValue", list) => Json::Array(elements(list).iter().map(to_json).collect::<Option<_>>()?),
        ("mapValue", map) => {
            let entry =
                |entry: &Json| Some((entry["key"]["stringValue"].as_str()?.to_owned(), to_json(&entry["value"])?));
            Json::Object(entries(map).iter().map(entry).collect::<Option<Map<_, _>>>()?)
        }
        _ => return None,
    })
}

/// Writes a value as an expression.
pub(crate) fn to_expression(value: &Json) -> Result<String, String> {
    let joined = |parts: Result<Vec<String>, String>| parts.map(|parts| parts.join(", "));
    Ok(match parts(value) {
        ("uint64Value", Json::String(digits)) => format!("{digits}u"),
        ("bytesValue", Json::String(text)) => format!("base64.decode('{text}')"),
        ("typeValue", Json::String(name)) => name.clone(),
        ("objectValue", object) if object["@type"] == TIMESTAMP => format!("timestamp({})", object["value"]),
        ("objectValue", object) if object["@type"] == DURATION => format!("duration({})", object["value"]),
        ("doubleValue", Json::String(text)) => format!("double('{text}')"),
        ("listValue", list) => format!("[{}]", joined(elements(list).iter().map(to_expression).collect())?),
        ("mapValue", map) => {
            let entry =
                |entry: &Json| Ok(format!("{}: {}", to_expression(&entry["key"])?, to_expression(&entry["value"])?));
            format!("{{{}}}", joined(entries(map).iter().map(entry).collect())?)
        }
        _ => to_json(value).ok_or_else(|| format!("the value {value} is unknown"))?.to_string(),
    })
}

/// Returns whether a computed value is the expected one, with the same types.
pub(crate) fn is(want: &Json, found: &Computed) -> bool {
    match (parts(want), found) {
        (("nullValue", _), Computed::Null) => true,
        (("boolValue", want), Computed::Bool(found)) => want == found,
        (("stringValue", want), Computed::String(found)) => want == found,
        (("int64Value", want), Computed::Int(found)) => want.as_str().is_some_and(|want| want.parse() == Ok(*found)),
        (("uint64Value", want), Computed::Uint(found)) => want.as_str().is_some_and(|want| want.parse() == Ok(*found)),
        (("doubleValue", Json::String(want)), Computed::Double(found)) => {
            want.parse::<f64>().is_ok_and(|want| want.total_cmp(found).is_eq() || want.is_nan() && found.is_nan())
        }
        (("doubleValue", want), Computed::Double(found)) => want.as_f64() == Some(*found),
        (("bytesValue", Json::String(want)), Computed::Bytes(found)) => *want == STANDARD.encode(found),
        (("typeValue", want), Computed::Type(found)) => want == found,
        (("objectValue", want), Computed::Timestamp(found) | Computed::Duration(found)) => want["value"] == **found,
        (("listValue", want), Computed::List(found)) => {
            let want = elements(want);
            want.len() == found.len() && want.iter().zip(found).all(|(want, found)| is(want, found))
        }
        (("mapValue", want), Computed::Map(found)) => {
            let same =
                |want: &Json, (key, value): &(Computed, Computed)| is(&want["key"], key) && is(&want["value"], value);
            let want = entries(want);
            want.len() == found.len() && want.iter().all(|want| found.iter().any(|found| same(want, found)))
        }
        _ => false,
    }
}
