#!/usr/bin/env bash
# Runs cases in shards on a Slurm of its own with four nodes, and loses one of them in the middle while its tasks go on writing.
# Then checks that the merged run has each case once, and the same answers as the run of one machine.
# Usage: slurm.sh PROGRAM FOLDER CASES SHARDS. Listens on loopback only, and ends only what it started.
set -euo pipefail
program=$1 folder=$2 cases=$3 shards=$4
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH="$(dirname "$program"):/usr/sbin:$PATH"
rm -rf "$folder"
mkdir -p "$folder"/{state,spool,log,work}
host=$(hostname -s)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

cat > "$folder/slurm.conf" <<CONF
ClusterName=t$port
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPort=$port
SlurmctldPidFile=$folder/ctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldLogFile=$folder/log/ctld.log
SlurmdLogFile=$folder/log/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/log/jobcomp.txt
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_res
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=3
SlurmctldTimeout=30
SlurmdTimeout=30
InactiveLimit=0
MaxArraySize=1001
$(for n in 1 2 3 4; do echo "NodeName=n$n NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + n)) CPUs=16 Boards=1 SocketsPerBoard=1 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN"; done)
PartitionName=main Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF="$folder/slurm.conf"

started=()
end() {
  scancel -u "$(id -un)" 2>/dev/null || true
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
}
trap end EXIT

slurmctld -D -f "$SLURM_CONF" 2>/dev/null & started+=($!)
declare -A node
for n in 1 2 3 4; do slurmd -D -N "n$n" -f "$SLURM_CONF" 2>/dev/null & started+=($!); node[$n]=$!; done
# Slurm starts a task again some 10 s after its node is lost, so a shard takes 40 s.
delay=$(python3 -c "print(max(0.05, 40 * 4 * $shards / $cases))")
python3 "$here/agent.py" "$delay" > "$folder/agent.port" & started+=($!)

wait_for() { # SECONDS WHAT COMMAND…
  local seconds=$1 what=$2; shift 2
  for ((i = 0; i < seconds * 5; i++)); do "$@" && return; sleep 0.2; done
  echo "$what did not happen in $seconds s" >&2
  exit 1
}
ready() { [[ "$(sinfo -h -o '%D %t' 2>/dev/null)" == "4 idle" && -s "$folder/agent.port" ]]; }
wait_for 60 "the start of Slurm" ready

cd "$folder/work"
python3 - "$cases" > cases.json <<'PY'
import json, sys
json.dump([{"id": f"c{n}", "input": {"user": f"question {n}"}} for n in range(int(sys.argv[1]))], sys.stdout)
PY
url="http://127.0.0.1:$(cat "$folder/agent.port")"
counterproof run --cases cases.json --side baseline --base-url "$url" --run-id first --concurrency 64 2> "$folder/log/baseline.log"
counterproof batch slurm --cases cases.json --shards "$shards" -- --base-url "$url" --concurrency 4 > batch.sh
bash batch.sh night > "$folder/log/submitted"
cat "$folder/log/submitted"
last=$(sed -n 's/merge and comparison: job //p' "$folder/log/submitted")

# In the middle: the node is lost for Slurm, and its tasks go on.
halfway() { [[ $(find runs/new -name 'c*.json' 2>/dev/null | wc -l) -gt $((cases / 4)) ]]; }
wait_for 300 "a quarter of the answers" halfway
lost=$(squeue -h -r -t R -o %N | sort | head -1)
echo "losing $lost with the tasks $(squeue -h -r -t R -w "$lost" -o %K | tr '\n' ' ')"
kill -9 "${node[${lost#n}]}"
scontrol update nodename="$lost" state=down reason=lost
finished() { [[ -z "$(squeue -h -j "$last" 2>/dev/null)" ]]; }
wait_for 1200 "the end of the last job" finished
cat "batch-logs/$last.log"

attempts=$(find runs/new -maxdepth 1 -name "*-a[0-9]*" | wc -l)
counterproof run --cases cases.json --side new --base-url "$url" --run-id whole --concurrency 64 2> "$folder/log/whole.log"
counterproof validate runs/new/night > /dev/null
counterproof compare --cases cases.json --baseline runs/baseline/first --new runs/new/whole --no-write-back --out whole --pages none > /dev/null
counterproof compare --cases cases.json --baseline runs/baseline/first --new runs/new/night --no-write-back --out merged --pages none > /dev/null
python3 - "$cases" "$attempts" <<'PY'
import json, pathlib, sys
cases, attempts = map(int, sys.argv[1:])
answers = lambda run: {path.stem: json.loads(path.read_text())["final_output"] for path in pathlib.Path("runs/new", run).glob("c*.json")}
night, whole = answers("night"), answers("whole")
assert night == whole and len(night) == cases, f"{len(night)} of {cases} answers"
results = lambda report: [[case["case_id"], case["verdict"], case["reasons"]] for case in json.loads(pathlib.Path(report, "evaluation.json").read_text())["cases"]]
assert results("merged") == results("whole") and len(results("merged")) == cases
assert attempts > 0, "no shard was started twice"
print(f"{cases} cases, each answered once and judged as on one machine; shards started again: {attempts}")
PY
