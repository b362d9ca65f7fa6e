//! The fields of an event that the ledger reads. Other fields are only stored.

#![expect(clippy::struct_field_names, reason = "the names of the fields of events")]

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

/// The fields that identify an event. The types of the others do not matter.
#[derive(Debug, Deserialize)]
pub(super) struct IdentityFields {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) ts: String,
    pub(super) run_id: String,
    #[serde(default)]
    pub(super) seq: Value,
    #[serde(default)]
    pub(super) source: Value,
}

/// A text that is a part of the line unless it has escapes.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

/// All fields of an event that the ledger reads, whatever its type. What most events lack is boxed, because events are moved.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) ts: Text<'a>,
    #[serde(borrow)]
    pub(super) run_id: Text<'a>,
    pub(super) seq: Option<u64>,
    #[serde(borrow)]
    pub(super) agent_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) client: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) env: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) source: Option<Source<'a>>,
    #[serde(borrow)]
    pub(super) principal: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) workload: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) run: Option<Box<Run<'a>>>,
    #[serde(borrow)]
    pub(super) call: Option<Call<'a>>,
    #[serde(borrow)]
    pub(super) decision: Option<Box<Decision<'a>>>,
    #[serde(borrow)]
    pub(super) status: Option<Text<'a>>,
    pub(super) latency_ms: Option<Number>,
    pub(super) bytes_out: Option<Number>,
    #[serde(borrow)]
    pub(super) preview: Option<Preview<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<ErrorFields<'a>>,
    #[serde(borrow)]
    pub(super) hint: Option<Box<Hint<'a>>>,
    #[serde(borrow)]
    pub(super) policy: Option<Box<Policy<'a>>>,
}

impl Fields<'_> {
    /// Returns the fields that are the same for all events of a source.
    pub(super) fn identity(&self) -> ([Option<&str>; 6], Option<&str>) {
        let source = self.source.as_ref();
        let texts = [
            source.and_then(|source| source.host_id.as_ref()),
            source.and_then(|source| source.proc_id.as_ref()),
            self.agent_id.as_ref(),
            self.client.as_ref(),
            self.env.as_ref(),
            self.principal.as_ref(),
        ];
        (texts.map(|text| text.map(|text| &*text.0)), self.workload.map(RawValue::get))
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Source<'a> {
    #[serde(borrow)]
    pub(super) host_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) proc_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) shim_id: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Run<'a> {
    #[serde(borrow)]
    pub(super) started_at: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) ended_at: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) mode: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) policy: Option<Box<Policy<'a>>>,
    #[serde(borrow)]
    pub(super) meta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) status: Option<Text<'a>>,
    pub(super) summary: Option<Summary>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Summary {
    pub(super) calls_total: Option<u64>,
    pub(super) calls_allowed: Option<u64>,
    pub(super) calls_blocked: Option<u64>,
    pub(super) calls_throttled: Option<u64>,
    pub(super) errors_total: Option<u64>,
    pub(super) duration_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) server_name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) tool_name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) args_hash: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) transport: Option<Text<'a>>,
    pub(super) bytes_in: Option<Number>,
    #[serde(borrow)]
    pub(super) preview: Option<Preview<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Preview<'a> {
    pub(super) truncated: Option<bool>,
    #[serde(borrow)]
    pub(super) args_preview: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) result_preview: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Decision<'a> {
    #[serde(borrow)]
    pub(super) action: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) rule_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) explain: Option<Explain<'a>>,
    #[serde(borrow)]
    pub(super) policy: Option<Box<Policy<'a>>>,
    #[serde(borrow)]
    pub(super) hint: Option<Box<Hint<'a>>>,
    #[serde(borrow)]
    pub(super) observed: Option<Observed<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Explain<'a> {
    #[serde(borrow)]
    pub(super) reason_code: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Observed<'a> {
    #[serde(borrow)]
    pub(super) action: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) rule_id: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ErrorFields<'a> {
    #[serde(borrow)]
    pub(super) class: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Hint<'a> {
    #[serde(borrow)]
    pub(super) hint_text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) hint_kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) suggested_args: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Policy<'a> {
    #[serde(borrow)]
    pub(super) policy_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) policy_version: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) policy_hash: Option<Text<'a>>,
    /// The rules themselves, which producers may add.
    #[serde(borrow)]
    pub(super) rules: Option<&'a RawValue>,
}
