//! Functions of all values: conversions between types, base64, sizes and types.

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};

use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::values::{Duration, Number, Timestamp, Value, double_text, shortened};

/// 2^63, and 2^64: the ends of the ranges of the integer types.
const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_POW_64: f64 = 18_446_744_073_709_551_616.0;

/// Steps for parsing a timestamp or a duration, which takes several times as long as other short texts.
const TIME_STEPS: u64 = 5;

pub(super) fn to_bool<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::String(text)] => match text.as_str() {
            // The spellings of CEL, which are those of Go.
            "1" | "t" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            other => failed(format!("“{}” is not a boolean", shortened(other))),
        },
        _ => Err(Stop::WrongTypes),
    }
}

pub(super) fn to_int<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let value = match arguments {
        [Value::Int(value)] => Some(*value),
        // Out of range is a failure and never a wrapped number, as CEL defines.
        [Value::Uint(value)] => i64::try_from(*value).ok(),
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
        // The smallest integer is excluded as well, as the conformance tests require.
        [Value::Double(value)] => (value.abs() < TWO_POW_63).then(|| value.trunc() as i64),
        [Value::Timestamp(time)] => Some(time.second()),
        [Value::String(text)] => {
            budget.read(text.as_str().len())?;
            match text.as_str().parse() {
                Ok(value) => Some(value),
                Err(_) => return failed(format!("“{}” is not an integer", shortened(text.as_str()))),
            }
        }
        _ => return Err(Stop::WrongTypes),
    };
    match value {
        Some(value) => Ok(Value::Int(value)),
        None => failed("the number is out of range for `int`"),
    }
}

pub(super) fn to_uint<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let value = match arguments {
        [Value::Uint(value)] => Some(*value),
        [Value::Int(value)] => u64::try_from(*value).ok(),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
        [Value::Double(value)] => (*value >= 0.0 && *value < TWO_POW_64).then(|| value.trunc() as u64),
        [Value::String(text)] => {
            budget.read(text.as_str().len())?;
            match text.as_str().parse() {
                Ok(value) => Some(value),
                Err(_) => return failed(format!("“{}” is not an unsigned integer", shortened(text.as_str()))),
            }
        }
        _ => return Err(Stop::WrongTypes),
    };
    match value {
        Some(value) => Ok(Value::Uint(value)),
        None => failed("the number is out of range for `uint`"),
    }
}

pub(super) fn to_double<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::String(text)] => {
            budget.read(text.as_str().len())?;
            match text.as_str().parse() {
                Ok(value) => Ok(Value::Double(value)),
                Err(_) => failed(format!("“{}” is not a number", shortened(text.as_str()))),
            }
        }
        // Every number has a double, if not an exact one.
        [value] => value.number().map(Number::to_double).map(Value::Double).ok_or(Stop::WrongTypes),
        _ => Err(Stop::WrongTypes),
    }
}

pub(super) fn to_string<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let text = match arguments {
        [value @ Value::String(_)] => return Ok(value.clone()),
        [Value::Bytes(bytes)] => {
            // Before the check of the encoding, which reads all bytes.
            budget.create_text(bytes.len())?;
            return match str::from_utf8(bytes) {
                Ok(text) => Ok(Value::string(text)),
                Err(_) => failed("the bytes are not UTF-8"),
            };
        }
        [Value::Bool(value)] => value.to_string(),
        [Value::Int(value)] => value.to_string(),
        [Value::Uint(value)] => value.to_string(),
        [Value::Double(value)] => double_text(*value),
        [Value::Timestamp(time)] => time.to_string(),
        [Value::Duration(duration)] => duration.to_string(),
        _ => return Err(Stop::WrongTypes),
    };
    budget.create_text(text.len())?;
    Ok(Value::string(text))
}

pub(super) fn to_bytes<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [value @ Value::Bytes(_)] => Ok(value.clone()),
        [Value::String(text)] => {
            budget.create_text(text.as_str().len())?;
            Ok(Value::Bytes(text.as_str().as_bytes().into()))
        }
        _ => Err(Stop::WrongTypes),
    }
}

/// Converts a text of RFC 3339, or seconds since 1970.
pub(super) fn to_timestamp<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    budget.charge(TIME_STEPS)?;
    let time = match arguments {
        [value @ Value::Timestamp(_)] => return Ok(value.clone()),
        [Value::Int(second)] => Timestamp::from_second(*second),
        [Value::String(text)] => Timestamp::parse(text.as_str()),
        _ => return Err(Stop::WrongTypes),
    };
    match (time, arguments) {
        (Some(time), _) => Ok(Value::Timestamp(time)),
        (None, [Value::String(text)]) => failed(format!(
            "“{}” is not a timestamp of the years 1 to 9999, such as 2026-01-31T08:30:00Z",
            shortened(text.as_str())
        )),
        _ => failed("the timestamp is not within the years 1 to 9999"),
    }
}

/// Converts a text such as `1h30m`.
pub(super) fn to_duration<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    budget.charge(TIME_STEPS)?;
    match arguments {
        [value @ Value::Duration(_)] => Ok(value.clone()),
        [Value::String(text)] => {
            budget.read(text.as_str().len())?;
            match Duration::parse(text.as_str()) {
                Some(duration) => Ok(Value::Duration(duration)),
                None => failed(format!(
                    "“{}” is not a duration below 292 years, such as 1h30m or 0.5s",
                    shortened(text.as_str())
                )),
            }
        }
        _ => Err(Stop::WrongTypes),
    }
}

/// Writes padding, and reads with or without it. Bits after the last byte are ignored.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

pub(super) fn encode<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::Bytes(bytes)] = arguments else { return Err(Stop::WrongTypes) };
    // Four thirds for the text, and as much for its shared copy: the encoder does not know the budget.
    budget.create_text(bytes.len().saturating_mul(3))?;
    Ok(Value::string(ENGINE.encode(bytes)))
}

pub(super) fn decode<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::String(text)] = arguments else { return Err(Stop::WrongTypes) };
    // Three quarters for the bytes and a copy, rounded up.
    budget.create_text(text.as_str().len().saturating_mul(2))?;
    match ENGINE.decode(text.as_str()) {
        Ok(bytes) => Ok(Value::Bytes(bytes.into())),
        Err(error) => failed(format!("the text is not base64: {error}")),
    }
}

/// Returns the number of characters, bytes, elements or entries.
pub(super) fn size<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [Value::String(text)] => {
            budget.read(text.as_str().len())?;
            Ok(Value::count(text.as_str().chars().count()))
        }
        [Value::Bytes(bytes)] => Ok(Value::count(bytes.len())),
        // No charge: the length is stored, and only a string is counted character by character.
        [Value::List(list)] => Ok(Value::count(list.len())),
        [Value::Map(map)] => Ok(Value::count(map.len())),
        _ => Err(Stop::WrongTypes),
    }
}

pub(super) fn type_of<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [value] => Ok(Value::Type(value.type_of())),
        _ => Err(Stop::WrongTypes),
    }
}

/// Returns its argument: types are checked while the expression is evaluated.
pub(super) fn dyn_value<'j>(_: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    match arguments {
        [value] => Ok(value.clone()),
        _ => Err(Stop::WrongTypes),
    }
}
