//! What an answer consumed: tokens and cost, as the agent or its model server reports them.

use serde::{Deserialize, Serialize};

use crate::{Count, Extra};

/// The tokens and the cost of a case. A number that the agent does not report is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// The tokens that the model read, including the cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<Count>,
    /// The tokens that the model wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<Count>,
    /// The input tokens that came from a cache; part of `input_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<Count>,
    /// The cost in `currency`; zero or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The currency of the cost, such as `USD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}
