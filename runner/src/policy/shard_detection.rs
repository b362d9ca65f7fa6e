//! Which shard this is, as the system that started the process says it: one pure function of the environment. What a shard
//! is asked is told in `shard`.

use crate::policy::shard::{Shard, ShardError};

/// A system that starts many processes of one job and tells each its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Platform {
    name: &'static str,
    index: &'static str,
    numbering: Numbering,
    /// Where the number of processes is, if the system tells.
    count: Option<&'static str>,
}

/// How a system counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbering {
    Zero,
    One,
    /// From a first index in steps, both of the user's choosing.
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

/// Why the environment does not say which shard this is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardDetectionError {
    /// None of the known variables is set.
    #[error("the environment does not say which shard this is: none of {} is set", variables())]
    Unknown,
    /// The number of shards is not in the environment.
    #[error("{platform} does not say how many shards there are")]
    NoCount {
        /// The system.
        platform: &'static str,
    },
    /// A variable holds no number that makes sense.
    #[error("the environment variable {variable} is `{value}`, which {reason}")]
    Value {
        /// The variable.
        variable: &'static str,
        /// What it holds.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The number of shards is not the one that was asked for.
    #[error("{platform} runs {actual} shards, and {asked} were asked for")]
    OtherCount {
        /// The system.
        platform: &'static str,
        /// Its number.
        actual: u32,
        /// The number asked for.
        asked: u32,
    },
    /// The indices of a Slurm array leave some out, so that they do not number shards.
    #[error("the Slurm array has {count} tasks, which are not all of {first} to {last} in steps of {step}")]
    Sparse {
        /// Tasks.
        count: u32,
        /// The least index.
        first: u32,
        /// The greatest index.
        last: u32,
        /// The step.
        step: u32,
    },
    /// Two systems speak, and say different things.
    #[error("{first} says that this is shard {one}, and {second} that it is shard {other}")]
    Ambiguous {
        /// A system.
        first: &'static str,
        /// What it says.
        one: Shard,
        /// Another system.
        second: &'static str,
        /// What that says.
        other: Shard,
    },
    /// The numbers make no shard.
    #[error(transparent)]
    Shard(#[from] ShardError),
}

/// The shard that the environment names; `count` is the number of shards where the user said it.
pub fn detect_shard(
    environment: impl Fn(&'static str) -> Option<String>,
    count: Option<u32>,
) -> Result<Shard, ShardDetectionError> {
    let mut found: Option<(&'static str, Shard)> = None;
    for platform in &PLATFORMS {
        let Some(shard) = platform.shard(&environment, count)? else { continue };
        match found {
            None => found = Some((platform.name, shard)),
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
        asked: Option<u32>,
    ) -> Result<Option<Shard>, ShardDetectionError> {
        let Some(index) = number(environment, self.index)? else { return Ok(None) };
        let said = self.count.map(|variable| number(environment, variable)).transpose()?.flatten();
        let (index, said) = match self.numbering {
            Numbering::Zero => (index.saturating_add(1), said),
            Numbering::One => (index, said),
            Numbering::Slurm => slurm(environment, index, said)?,
        };
        let count = match (said, asked) {
            (Some(actual), Some(asked)) if actual != asked => {
                return Err(ShardDetectionError::OtherCount { platform: self.name, actual, asked });
            }
            (said, asked) => said.or(asked).ok_or(ShardDetectionError::NoCount { platform: self.name })?,
        };
        Ok(Some(Shard::new(index, count)?))
    }
}

/// A Slurm array may start anywhere and count in steps: `--array=10-40:10` has the indices 10, 20, 30 and 40.
fn slurm(
    environment: &impl Fn(&'static str) -> Option<String>,
    id: u32,
    count: Option<u32>,
) -> Result<(u32, Option<u32>), ShardDetectionError> {
    let first = number(environment, "SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
    let step = number(environment, "SLURM_ARRAY_TASK_STEP")?.filter(|&step| step > 0).unwrap_or(1);
    let last = number(environment, "SLURM_ARRAY_TASK_MAX")?;
    let Some(offset) = id.checked_sub(first).filter(|offset| offset % step == 0) else {
        return Err(ShardDetectionError::Value {
            variable: "SLURM_ARRAY_TASK_ID",
            value: id.to_string(),
            reason: format!("is none of {first}, {}, …", first.saturating_add(step)),
        });
    };
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
    // An empty variable is one that a CI template left blank.
    let Some(value) = environment(variable).filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(ShardDetectionError::Value { variable, value, reason: "is not a whole number".to_owned() }),
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
    fn each_platform_counts_in_its_own_way() {
        type Row = (&'static [(&'static str, &'static str)], Option<u32>, &'static str);
        let table: [Row; 9] = [
            (&[("AWS_BATCH_JOB_ARRAY_INDEX", "0"), ("AWS_BATCH_JOB_ARRAY_SIZE", "10")], None, "1/10"),
            (&[("AWS_BATCH_JOB_ARRAY_INDEX", "9")], Some(10), "10/10"),
            (&[("JOB_COMPLETION_INDEX", "4")], Some(5), "5/5"),
            (&[("CI_NODE_INDEX", "1"), ("CI_NODE_TOTAL", "3")], None, "1/3"),
            (&[("CI_NODE_INDEX", "3"), ("CI_NODE_TOTAL", "3")], Some(3), "3/3"),
            (&[("BUILDKITE_PARALLEL_JOB", "0"), ("BUILDKITE_PARALLEL_JOB_COUNT", "5")], None, "1/5"),
            (&[("CIRCLE_NODE_INDEX", "3"), ("CIRCLE_NODE_TOTAL", "4")], None, "4/4"),
            // A GitLab job that is not parallel has the total alone, and says nothing here.
            (&[("CI_NODE_TOTAL", "1"), ("JOB_COMPLETION_INDEX", "1")], Some(2), "2/2"),
            // Two that agree are no trouble: AWS Batch may run on Kubernetes.
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
    fn slurm_arrays_may_start_anywhere_and_count_in_steps() {
        assert_eq!(slurm("0", "0", "31", "1", "32").as_deref(), Ok("1/32"));
        assert_eq!(slurm("4", "1", "4", "1", "4").as_deref(), Ok("4/4"));
        // `--array=2-5`
        assert_eq!(slurm("2", "2", "5", "1", "4").as_deref(), Ok("1/4"));
        assert_eq!(slurm("30", "10", "40", "10", "4").as_deref(), Ok("3/4"));
        // `--array=0-15:4`, whether the greatest index is told as it was written or as it is used.
        assert_eq!(slurm("12", "0", "15", "4", "4").as_deref(), Ok("4/4"));
        assert_eq!(slurm("12", "0", "12", "4", "4").as_deref(), Ok("4/4"));
        assert_eq!(slurm("1", "1", "4", "", "4").as_deref(), Ok("1/4"));
        assert!(slurm("3", "1", "7", "1", "4").unwrap_err().contains("not all of 1 to 7"), "--array=1,3,5,7");
        assert!(slurm("2", "1", "7", "2", "4").is_err() && slurm("0", "1", "4", "1", "4").is_err());
    }

    #[test]
    fn what_does_not_add_up_is_refused() {
        assert!(shard(&[], None).unwrap_err().contains("SLURM_ARRAY_TASK_ID"));
        assert!(shard(&[("JOB_COMPLETION_INDEX", "4")], None).unwrap_err().contains("how many"));
        assert!(shard(&[("JOB_COMPLETION_INDEX", "5")], Some(5)).is_err());
        assert!(shard(&[("CI_NODE_INDEX", "0"), ("CI_NODE_TOTAL", "3")], None).is_err());
        assert!(shard(&[("CI_NODE_INDEX", "one"), ("CI_NODE_TOTAL", "3")], None).is_err());
        let one = [("CIRCLE_NODE_INDEX", "0"), ("CIRCLE_NODE_TOTAL", "4")];
        assert_eq!(shard(&one, Some(5)).unwrap_err(), "CircleCI runs 4 shards, and 5 were asked for");
        let two = [one.as_slice(), &[("CI_NODE_INDEX", "3"), ("CI_NODE_TOTAL", "4")]].concat();
        assert!(shard(&two, None).unwrap_err().contains("GitLab"));
    }
}
