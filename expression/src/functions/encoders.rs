//! Base64.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::budget::{Budget, Evaluated, Stop, failed};
use crate::values::Value;

/// Writes padding, and reads with or without it. Bits after the last byte are ignored.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

pub(super) fn encode<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::Bytes(bytes)] = arguments else { return Err(Stop::WrongTypes) };
    budget.create_text(bytes.len().saturating_mul(3))?;
    Ok(Value::string(ENGINE.encode(bytes)))
}

pub(super) fn decode<'j>(budget: &mut Budget, arguments: &[Value<'j>]) -> Evaluated<'j> {
    let [Value::String(text)] = arguments else { return Err(Stop::WrongTypes) };
    budget.create_text(text.as_str().len().saturating_mul(2))?;
    match ENGINE.decode(text.as_str()) {
        Ok(bytes) => Ok(Value::Bytes(bytes.into())),
        Err(error) => failed(format!("the text is not base64: {error}")),
    }
}
