//! `run.json`: one pass over the selected cases against one side; and `labels.json` and the review of an accepted baseline.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::{CaseId, Count, Extra, Millis, RunId, Sha256Digest, Side};

/// Prefix of the base URL where the agent is a program instead of a server.
pub const PROGRAM: &str = "cmd:";

/// The version of the run document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RunSchema {
    /// `run.v1`
    #[default]
    #[serde(rename = "run.v1")]
    V1,
}

/// The settings and the result of a run.
///
/// It is written when the run starts, without [`Run::stats`], and again when it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "an object with the fields of a run")]
pub struct Run {
    /// Always `run.v1`.
    pub schema_version: RunSchema,
    /// The id of the run and the name of its folder.
    pub run_id: RunId,
    /// The side of the run.
    pub version: Side,
    /// The start time, in ISO 8601.
    pub generated_at: String,
    /// The URL of the agent, without credentials; for a program, [`PROGRAM`] and its name.
    pub base_url: String,
    /// The cases file, relative to the folder of this document.
    pub cases_path: String,
    /// The relative path of the cases file that was passed to the runner. Unlike [`Run::cases_path`], it is useful after the run
    /// folder was copied. Absent where an absolute path was passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases_path_as_passed: Option<String>,
    /// The runner's output folder, relative to the folder of this document.
    pub out_dir: String,
    /// The selected cases, in order.
    pub selected_case_ids: Vec<CaseId>,
    /// The program that wrote the run, and its version.
    pub runner_version: String,
    /// The commit of the working directory of the runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_commit: Option<String>,
    /// True where there were uncommitted changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// The version of Node.js, for runners written in JavaScript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_version: Option<String>,
    /// The time limit of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
    /// The largest number of retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Count>,
    /// The number of cases that run concurrently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Count>,
    /// Which failures are retried, and the wait before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_policy: Option<RetryPolicy>,
    /// Size limits of saved responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The digest of the input of the selected cases: a run can be resumed only with the cases that it was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_digests: Option<BTreeMap<CaseId, Sha256Digest>>,
    /// The digest of the expectations of the selected cases, as they were when the run started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expectation_digests: Option<BTreeMap<CaseId, Sha256Digest>>,
    /// The digest over all selected cases, in order; equal for all shards of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases_digest: Option<Sha256Digest>,
    /// The shard of a larger run; absent for a complete run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardOf>,
    /// The id that the repeats of a run share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_id: Option<RunId>,
    /// The number of this repeat in its group, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Count>,
    /// The number of repeats in the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Count>,
    /// The run whose flipped cases this run asks again; absent for every other run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// True where the agent is declared to do the same whenever it is asked the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deterministic: Option<bool>,
    /// How this run became the baseline, if it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Accepted>,
    /// The result; absent while the run is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<Stats>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Run {
    /// Creates the document of a run below `<out>/<side>/<run_id>/`, with its required fields only.
    pub fn new(run_id: RunId, side: Side, generated_at: String, runner_version: String) -> Self {
        Self {
            schema_version: RunSchema::V1,
            run_id,
            version: side,
            generated_at,
            base_url: String::new(),
            cases_path: String::new(),
            cases_path_as_passed: None,
            out_dir: "../..".to_owned(),
            selected_case_ids: Vec::new(),
            runner_version,
            repo_commit: None,
            dirty: None,
            node_version: None,
            timeout_ms: None,
            retries: None,
            concurrency: None,
            retry_policy: None,
            limits: None,
            case_digests: None,
            expectation_digests: None,
            cases_digest: None,
            shard: None,
            group_id: None,
            repeat: None,
            repeats: None,
            confirmation: None,
            deterministic: None,
            accepted: None,
            stats: None,
            extra: Extra::new(),
        }
    }
}

impl Run {
    /// The group of repeats; a run that was not repeated is a group of its own.
    pub fn group(&self) -> &RunId {
        self.group_id.as_ref().unwrap_or(&self.run_id)
    }

    /// The model that the agent used, if the run records it.
    pub fn model(&self) -> Option<&str> {
        self.extra.get("model")?.as_str()
    }

    /// The sort key for the age of a run: the time of acceptance, or else the start time, as an instant. A text that is not a
    /// time sorts before every time; between equal times, the greater id is newer.
    pub fn age(&self) -> (Option<Timestamp>, &str, &RunId) {
        // An accepted run may have started before the baseline that it replaces.
        let text = self.accepted.as_ref().map_or(&self.generated_at, |accepted| &accepted.at).as_str();
        match point_in_time(text) {
            // The text is left out, so that two notations of one instant are equally old.
            Some(time) => (Some(time), "", &self.run_id),
            None => (None, text, &self.run_id),
        }
    }
}

/// Parses a time of a document, in ISO 8601. A time without an offset is in UTC.
pub fn point_in_time(text: &str) -> Option<Timestamp> {
    let in_utc = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    text.parse().ok().or_else(in_utc)
}

/// How a run of the new side became the baseline. The baseline is a copy of that run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// The time, in ISO 8601.
    pub at: String,
    /// The reason, in the words of the user.
    pub reason: String,
    /// The original run.
    pub from_run_id: RunId,
    /// The user who accepted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The marks of a person on the cases of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The part of a larger run that a shard covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardOf {
    /// The id of the complete run.
    pub run_id: RunId,
    /// The number of this shard, counted from 1.
    pub index: Count,
    /// The number of shards.
    pub count: Count,
    /// The number of cases in all shards.
    pub cases_total: Count,
    /// The index of each selected case among all cases, counted from 0.
    pub positions: Vec<Count>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a confirmation run confirms. It runs only the cases that flipped: baseline met them and the confirmed run did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The run of side `new` in which the cases flipped, also where this run is one of baseline.
    pub of: RunId,
    /// The baseline runs that the cases flipped against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<RunId>,
    /// The number of this run among the confirmation runs of its side, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<Count>,
    /// The planned number of confirmation runs of its side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// True if a case is not run again after it passed on new or failed on baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_early: Option<bool>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Which failures are retried, and the wait before a retry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Classes of failure that are retried, such as `timeout` or `http_5xx`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// The growth of the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// True where the wait has a random part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The growth of the wait between two attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    /// Doubles with every attempt.
    Exponential,
}

/// Size limits of saved responses.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Largest body that is saved completely, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_body_bytes: Option<Count>,
    /// Longest snippet of a body in an artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_inline_snippet_bytes: Option<Count>,
    /// Largest tool payload in an artifact; a larger one becomes an asset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_payload_inline_bytes: Option<Count>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The result of a run.
///
/// `cases_completed` and `cases_failed` add up to the number of artifacts. Documents that count failures as completed are
/// accepted too.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Number of selected cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases_total: Option<Count>,
    /// Number of cases with an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases_completed: Option<Count>,
    /// Number of cases with a runner failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases_failed: Option<Count>,
    /// The time from the first request to the last artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Millis>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

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

/// The JSON Schema of a [`Review`].
pub const REVIEW_SCHEMA_SOURCE: &str = include_str!("../../schemas/review.v1.schema.json");

/// The version of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ReviewSchema {
    /// `review.v1`
    #[default]
    #[serde(rename = "review.v1")]
    V1,
}

/// The marks that a person gave to cases in a report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Review {
    /// Always `review.v1`.
    pub schema_version: ReviewSchema,
    /// The marked cases.
    pub marks: Vec<ReviewMark>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The mark of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewMark {
    /// The case.
    pub case_id: CaseId,
    /// What the person says of the new run in this case.
    pub mark: Mark,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a person says of the new run in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// The new run does the right thing.
    Right,
    /// The new run does the wrong thing.
    Wrong,
    /// The difference is known and dealt with elsewhere.
    Known,
}

impl Mark {
    /// All marks.
    pub const ALL: [Self; 3] = [Self::Right, Self::Wrong, Self::Known];

    /// The word in a document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Wrong => "wrong",
            Self::Known => "known",
        }
    }
}

impl Review {
    /// The number of cases with each mark: `2 right, 1 wrong, 0 known`.
    pub fn summary(&self) -> String {
        let count = |mark| self.marks.iter().filter(|marked| marked.mark == mark).count();
        Mark::ALL.map(|mark| format!("{} {}", count(mark), mark.as_str())).join(", ")
    }
}
