//! `run.json`: one pass over the selected cases against one side.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::{CaseId, Count, Extra, Millis, RunId, Sha256Digest, Side};

/// What a base URL begins with where the agent is a program and no server.
pub const PROGRAM: &str = "cmd:";

/// The version of the run document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RunSchema {
    /// `run.v1`
    #[default]
    #[serde(rename = "run.v1")]
    V1,
}

/// What a run was: when, against what, with which settings, and how it went.
///
/// It is written when the run starts, without [`Run::stats`], and again when it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Always `run.v1`.
    pub schema_version: RunSchema,
    /// Names the run and its folder.
    pub run_id: RunId,
    /// The side that the run stands for.
    pub version: Side,
    /// When the run started, in ISO 8601.
    pub generated_at: String,
    /// Where the agent was reached, without credentials; of a program, [`PROGRAM`] and its name.
    pub base_url: String,
    /// The cases file, relative to the folder that holds this document.
    pub cases_path: String,
    /// The runner's output folder, relative to the folder that holds this document.
    pub out_dir: String,
    /// The cases that the run set out to ask, in their order.
    pub selected_case_ids: Vec<CaseId>,
    /// The program that wrote the run, and its version.
    pub runner_version: String,
    /// The commit that was checked out where the runner ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_commit: Option<String>,
    /// True where that checkout had uncommitted changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// The version of Node.js, for runners that are written in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_version: Option<String>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
    /// How often an attempt that failed may be repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Count>,
    /// How many cases are asked at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Count>,
    /// Which failures are tried again, and how soon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_policy: Option<RetryPolicy>,
    /// How much of a response is kept, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The digest of what each selected case asks, so that a run can be resumed only with the cases it was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_digests: Option<BTreeMap<CaseId, Sha256Digest>>,
    /// The digest over all cases that were chosen, in their order; shards of one run have it in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases_digest: Option<Sha256Digest>,
    /// Which part of a larger run this is; absent where it is a whole one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardOf>,
    /// What the repeats of one run have in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_id: Option<RunId>,
    /// Which repeat of the group this is, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Count>,
    /// How many repeats the group has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Count>,
    /// How the repeats are chosen, where each asks only the cases that those before it left open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_decided: Option<UntilDecided>,
    /// Why this run is the baseline, where somebody made it that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Accepted>,
    /// How the run went; absent while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<Stats>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Run {
    /// What orders runs by age: the time they were accepted at, or else started at, whatever its offset and precision. A text
    /// that is no time is older than every time; of two equal ones the greater id is the newer.
    pub fn age(&self) -> (Option<Timestamp>, &str, &RunId) {
        // A run may have started before the baseline that it takes the place of.
        let text = self.accepted.as_ref().map_or(&self.generated_at, |accepted| &accepted.at).as_str();
        match point_in_time(text) {
            Some(time) => (Some(time), "", &self.run_id),
            None => (None, text, &self.run_id),
        }
    }
}

/// A time as documents write it; one without an offset is taken for one in UTC.
pub(crate) fn point_in_time(text: &str) -> Option<Timestamp> {
    let in_utc = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    text.parse().ok().or_else(in_utc)
}

/// How a run of the new side became the baseline: the folder that says so is a copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// When, in ISO 8601.
    pub at: String,
    /// Why.
    pub reason: String,
    /// The run that it is a copy of.
    pub from_run_id: RunId,
    /// Who said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Which part of a larger run a run is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardOf {
    /// The run that the shards make together.
    pub run_id: RunId,
    /// Which shard this is, counted from 1.
    pub index: Count,
    /// How many shards there are.
    pub count: Count,
    /// How many cases all shards have together.
    pub cases_total: Count,
    /// Where each selected case stands among all cases, counted from 0.
    pub positions: Vec<Count>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Repeats that stop when they have decided: how often a case is asked depends on how it went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UntilDecided {
    /// The baseline runs that the repeats are held against.
    pub against: Vec<RunId>,
    /// How many repeats, from the first on, ask every case whatever comes of it.
    pub full_rounds: Count,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Which failures are tried again, and how soon.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Classes of failure that are tried again, such as `timeout` or `http_5xx`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// How the wait grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// True where the wait has a random part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How the wait between two attempts grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    /// It doubles from attempt to attempt.
    Exponential,
}

/// How much of a response is kept, and where.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Largest body that is kept whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_body_bytes: Option<Count>,
    /// Longest snippet of a body within an artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_inline_snippet_bytes: Option<Count>,
    /// Largest tool payload within an artifact; a larger one becomes an asset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_payload_inline_bytes: Option<Count>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How a run went.
///
/// `cases_completed` and `cases_failed` add up to the number of artifacts; a producer that counts its failures among the
/// completed cases is understood too.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Cases selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases_total: Option<Count>,
    /// Cases that the agent answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases_completed: Option<Count>,
    /// Cases that ended as a runner failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases_failed: Option<Count>,
    /// From the first request to the last artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Millis>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}
