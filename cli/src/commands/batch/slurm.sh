#!/bin/bash
# Runs {{CASES}} in {{SHARDS}} shards on Slurm: an array of tasks, then a job that merges them and compares the run.
# Submit it in the folder of the cases, which all nodes see: bash THIS_FILE [RUN_ID]
# A task that Slurm starts again, because its node is lost, goes on where the lost one was.
set -euo pipefail

export RUN_ID="${1:-{{ID}}}"
mkdir -p batch-logs

array=$(sbatch --parsable --requeue --export=ALL --array=0-{{LAST}} --output=batch-logs/%A_%a.log <<'END_OF_SHARD'
#!/bin/bash
exec {{RUN}} --run-id "$RUN_ID" --shard auto/{{SHARDS}} --take-over
END_OF_SHARD
)
echo "shards: job $array"

# After any end of the tasks: a shard that is not complete is named by the merge, and fails the job. Shared file systems show new
# files late, so the merge waits for them.
last=$(sbatch --parsable --export=ALL --dependency="afterany:$array" --output=batch-logs/%j.log <<'JOB'
#!/bin/bash
set -euo pipefail
counterproof merge --shards {{SHARDS}} --wait 2m --out {{FOLDER}}/"$RUN_ID"
{{COMPARE_SHELL}}
JOB
)
echo "merge and comparison: job $last"
