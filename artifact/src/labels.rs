//! `labels.json`: which cases the agent of an accepted baseline solved.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CaseId, Extra};

/// The version of the labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum LabelsSchema {
    /// `labels.v1`
    #[default]
    #[serde(rename = "labels.v1")]
    V1,
}

/// The labels of a baseline.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Labels {
    /// Always `labels.v1`.
    pub schema_version: LabelsSchema,
    /// For each labelled case, whether the agent solved it.
    pub solved: BTreeMap<CaseId, bool>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}
