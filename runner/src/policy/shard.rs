//! The shard of a run that this process runs: an option, or the variables of a scheduler or a CI system.

use counterproof_artifact::RunId;
use counterproof_cases::{Shard, ShardError};

/// A shard and the run that it is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunShard {
    /// The id of the whole run.
    pub run_id: RunId,
    /// The shard of the run.
    pub shard: Shard,
}

/// A job system that starts many processes and numbers them in environment variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Platform {
    name: &'static str,
    index: &'static str,
    numbering: Numbering,
    /// The variable with the number of processes, if the system has one.
    count: Option<&'static str>,
}

/// How a system numbers its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbering {
    Zero,
    One,
    /// From a first index in steps, both chosen by the user.
    Slurm,
}

const PLATFORMS: [Platform; 6] = [
    // https://slurm.schedmd.com/job_array.html
    Platform {
        name: "Slurm",
        index: "SLURM_ARRAY_TASK_ID",
        numbering: Numbering::Slurm,
        count: Some("SLURM_ARRAY_TASK_COUNT"),
    },
    // https://docs.aws.amazon.com/batch/latest/userguide/job_env_vars.html
    Platform {
        name: "AWS Batch",
        index: "AWS_BATCH_JOB_ARRAY_INDEX",
        numbering: Numbering::Zero,
        count: Some("AWS_BATCH_JOB_ARRAY_SIZE"),
    },
    // https://kubernetes.io/docs/tasks/job/indexed-parallel-processing-static/
    Platform { name: "Kubernetes", index: "JOB_COMPLETION_INDEX", numbering: Numbering::Zero, count: None },
    // https://docs.gitlab.com/ci/variables/predefined_variables/
    Platform { name: "GitLab", index: "CI_NODE_INDEX", numbering: Numbering::One, count: Some("CI_NODE_TOTAL") },
    // https://buildkite.com/docs/pipelines/configure/environment-variables
    Platform {
        name: "Buildkite",
        index: "BUILDKITE_PARALLEL_JOB",
        numbering: Numbering::Zero,
        count: Some("BUILDKITE_PARALLEL_JOB_COUNT"),
    },
    // https://circleci.com/docs/reference/variables/
    Platform {
        name: "CircleCI",
        index: "CIRCLE_NODE_INDEX",
        numbering: Numbering::Zero,
        count: Some("CIRCLE_NODE_TOTAL"),
    },
];

/// Why the shard could not be detected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardDetectionError {
    /// None of the known variables is set.
    #[error("cannot detect the shard: none of these environment variables is set: {}", variables())]
    Unknown,
    /// The environment does not contain the number of shards.
    #[error("cannot detect the number of shards: {platform} does not provide it")]
    NoCount {
        /// The job system.
        platform: &'static str,
    },
    /// The value of a variable is not a valid index or count.
    #[error("invalid environment variable {variable}=`{value}`: {reason}")]
    InvalidVariable {
        /// The name of the variable.
        variable: &'static str,
        /// The invalid value.
        value: String,
        /// Why it is invalid.
        reason: InvalidValue,
    },
    /// The number of shards differs from the requested one.
    #[error("{platform} runs {actual} shards, but {requested} were requested")]
    OtherCount {
        /// The job system.
        platform: &'static str,
        /// Its number of shards.
        actual: u32,
        /// The requested number of shards.
        requested: u32,
    },
    /// The indices of a Slurm array have gaps and cannot number shards.
    #[error("the {count} tasks of the Slurm array do not cover every index from {first} to {last} in steps of {step}")]
    Sparse {
        /// The number of tasks.
        count: u32,
        /// The lowest index.
        first: u32,
        /// The highest index.
        last: u32,
        /// The step between two indices.
        step: u32,
    },
    /// Two job systems name different shards.
    #[error("ambiguous shard: {first} names {one}, {second} names {other}")]
    Ambiguous {
        /// One job system.
        first: &'static str,
        /// The shard that it names.
        one: Shard,
        /// Another job system.
        second: &'static str,
        /// The shard that the other system names.
        other: Shard,
    },
    /// The numbers are out of range.
    #[error(transparent)]
    Shard(#[from] ShardError),
}

/// Why the value of an environment variable is not a valid index or count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValue {
    /// The value is not an unsigned integer.
    #[error("not a whole number")]
    NotANumber,
    /// The index is not one of the Slurm array.
    #[error("expected one of {first}, {second}, …")]
    NotInArray {
        /// The first index of the array.
        first: u32,
        /// The second index of the array.
        second: u32,
    },
}

/// Detects the shard of this process. `count` is the number of shards if the user specified it.
pub fn detect_shard(
    environment: impl Fn(&'static str) -> Option<String>,
    count: Option<u32>,
) -> Result<Shard, ShardDetectionError> {
    let mut found: Option<(&'static str, Shard)> = None;
    for platform in &PLATFORMS {
        let Some(shard) = platform.shard(&environment, count)? else { continue };
        match found {
            None => found = Some((platform.name, shard)),
            // Job systems can be nested. Equal shards are not a conflict.
            Some((_, known)) if known == shard => {}
            Some((first, one)) => {
                return Err(ShardDetectionError::Ambiguous { first, one, second: platform.name, other: shard });
            }
        }
    }
    found.map(|(_, shard)| shard).ok_or(ShardDetectionError::Unknown)
}

impl Platform {
    fn shard(
        &self,
        environment: &impl Fn(&'static str) -> Option<String>,
        requested: Option<u32>,
    ) -> Result<Option<Shard>, ShardDetectionError> {
        let Some(index) = number(environment, self.index)? else { return Ok(None) };
        let provided = self.count.map(|variable| number(environment, variable)).transpose()?.flatten();
        let (index, provided) = match self.numbering {
            Numbering::Zero => (index.saturating_add(1), provided),
            Numbering::One => (index, provided),
            Numbering::Slurm => slurm(environment, index, provided)?,
        };
        // A count that differs is an error and not an override: cases would run twice or not at all.
        let count = match (provided, requested) {
            (Some(actual), Some(requested)) if actual != requested => {
                return Err(ShardDetectionError::OtherCount { platform: self.name, actual, requested });
            }
            (provided, requested) => {
                provided.or(requested).ok_or(ShardDetectionError::NoCount { platform: self.name })?
            }
        };
        Ok(Some(Shard::new(index, count)?))
    }
}

/// Converts the index of a Slurm array. It may start anywhere and count in steps: `--array=10-40:10` has the indices 10, 20,
/// 30 and 40.
fn slurm(
    environment: &impl Fn(&'static str) -> Option<String>,
    id: u32,
    count: Option<u32>,
) -> Result<(u32, Option<u32>), ShardDetectionError> {
    let first = number(environment, "SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
    let step = number(environment, "SLURM_ARRAY_TASK_STEP")?.filter(|&step| step > 0).unwrap_or(1);
    let last = number(environment, "SLURM_ARRAY_TASK_MAX")?;
    let Some(offset) = id.checked_sub(first).filter(|offset| offset % step == 0) else {
        return Err(ShardDetectionError::InvalidVariable {
            variable: "SLURM_ARRAY_TASK_ID",
            value: id.to_string(),
            reason: InvalidValue::NotInArray { first, second: first.saturating_add(step) },
        });
    };
    // An array can have gaps: `--array=0,5` has two tasks with indices from 0 to 5.
    let counted = last.and_then(|last| Some(last.checked_sub(first)? / step + 1));
    match (count, counted, last) {
        (Some(count), Some(counted), Some(last)) if count != counted => {
            Err(ShardDetectionError::Sparse { count, first, last, step })
        }
        _ => Ok((offset / step + 1, counted.or(count))),
    }
}

fn number(
    environment: &impl Fn(&'static str) -> Option<String>,
    variable: &'static str,
) -> Result<Option<u32>, ShardDetectionError> {
    // CI templates leave unused variables empty, so an empty variable counts as not set.
    let Some(value) = environment(variable).filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(ShardDetectionError::InvalidVariable { variable, value, reason: InvalidValue::NotANumber }),
    }
}

fn variables() -> String {
    PLATFORMS.map(|platform| platform.index).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(variables: &[(&str, &str)], count: Option<u32>) -> Result<String, String> {
        let lookup = |name: &'static str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        detect_shard(lookup, count).map(|shard| shard.to_string()).map_err(|error| error.to_string())
    }

    fn slurm(id: &str, min: &str, max: &str, step: &str, count: &str) -> Result<String, String> {
        let names = ["ID", "MIN", "MAX", "STEP", "COUNT"].map(|name| format!("SLURM_ARRAY_TASK_{name}"));
        let values = [id, min, max, step, count];
        let variables: Vec<_> = names.iter().map(String::as_str).zip(values).collect();
        shard(&variables, None)
    }

    #[test]
    fn each_platform_has_its_own_numbering() {
        type Row = (&'static [(&'static str, &'static str)], Option<u32>, &'static str);
        let table: [Row; 9] = [
            (&[("AWS_BATCH_JOB_ARRAY_INDEX", "0"), ("AWS_BATCH_JOB_ARRAY_SIZE", "10")], None, "1/10"),
            (&[("AWS_BATCH_JOB_ARRAY_INDEX", "9")], Some(10), "10/10"),
            (&[("JOB_COMPLETION_INDEX", "4")], Some(5), "5/5"),
            (&[("CI_NODE_INDEX", "1"), ("CI_NODE_TOTAL", "3")], None, "1/3"),
            (&[("CI_NODE_INDEX", "3"), ("CI_NODE_TOTAL", "3")], Some(3), "3/3"),
            (&[("BUILDKITE_PARALLEL_JOB", "0"), ("BUILDKITE_PARALLEL_JOB_COUNT", "5")], None, "1/5"),
            (&[("CIRCLE_NODE_INDEX", "3"), ("CIRCLE_NODE_TOTAL", "4")], None, "4/4"),
            // A GitLab job that is not parallel sets only the total, and is ignored here.
            (&[("CI_NODE_TOTAL", "1"), ("JOB_COMPLETION_INDEX", "1")], Some(2), "2/2"),
            // Two systems may agree: AWS Batch may run on Kubernetes.
            (
                &[("JOB_COMPLETION_INDEX", "1"), ("AWS_BATCH_JOB_ARRAY_INDEX", "1"), ("AWS_BATCH_JOB_ARRAY_SIZE", "3")],
                Some(3),
                "2/3",
            ),
        ];
        for (variables, count, expected) in table {
            assert_eq!(shard(variables, count).as_deref(), Ok(expected), "{variables:?}");
        }
    }

    #[test]
    fn slurm_arrays_may_start_anywhere_and_have_steps() {
        assert_eq!(slurm("0", "0", "31", "1", "32").as_deref(), Ok("1/32"));
        assert_eq!(slurm("4", "1", "4", "1", "4").as_deref(), Ok("4/4"));
        // `--array=2-5`
        assert_eq!(slurm("2", "2", "5", "1", "4").as_deref(), Ok("1/4"));
        assert_eq!(slurm("30", "10", "40", "10", "4").as_deref(), Ok("3/4"));
        // `--array=0-15:4`: the highest index may be the written one or the used one.
        assert_eq!(slurm("12", "0", "15", "4", "4").as_deref(), Ok("4/4"));
        assert_eq!(slurm("12", "0", "12", "4", "4").as_deref(), Ok("4/4"));
        assert_eq!(slurm("1", "1", "4", "", "4").as_deref(), Ok("1/4"));
        assert!(slurm("3", "1", "7", "1", "4").unwrap_err().contains("every index from 1 to 7"), "--array=1,3,5,7");
        assert!(slurm("2", "1", "7", "2", "4").is_err() && slurm("0", "1", "4", "1", "4").is_err());
    }

    #[test]
    fn inconsistent_variables_are_rejected() {
        assert!(shard(&[], None).unwrap_err().contains("SLURM_ARRAY_TASK_ID"));
        assert!(shard(&[("JOB_COMPLETION_INDEX", "4")], None).unwrap_err().contains("number of shards"));
        assert!(shard(&[("JOB_COMPLETION_INDEX", "5")], Some(5)).is_err());
        assert!(shard(&[("CI_NODE_INDEX", "0"), ("CI_NODE_TOTAL", "3")], None).is_err());
        assert!(shard(&[("CI_NODE_INDEX", "one"), ("CI_NODE_TOTAL", "3")], None).is_err());
        let one = [("CIRCLE_NODE_INDEX", "0"), ("CIRCLE_NODE_TOTAL", "4")];
        assert_eq!(shard(&one, Some(5)).unwrap_err(), "CircleCI runs 4 shards, but 5 were requested");
        let two = [one.as_slice(), &[("CI_NODE_INDEX", "3"), ("CI_NODE_TOTAL", "4")]].concat();
        assert!(shard(&two, None).unwrap_err().contains("GitLab"));
    }
}
