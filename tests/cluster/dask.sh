#!/usr/bin/env bash
# Runs cases in shards on a Dask cluster with two workers, on loopback, and ends only what it started.
# Usage: dask.sh PROGRAM FOLDER CASES SHARDS PYTHON_PROGRAMS
set -euo pipefail
program=$1 folder=$2 cases=$3 shards=$4 programs=$5
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH="$(dirname "$program"):$PATH"
rm -rf "$folder"
mkdir -p "$folder/work"
cd "$folder/work"

started=()
end() {
  for pid in "${started[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
}
trap end EXIT

python3 "$here/agent.py" 0.01 > "$folder/agent.port" & started+=($!)
port=$("$programs/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$programs/dask" scheduler --host 127.0.0.1 --port "$port" --no-dashboard > "$folder/scheduler.log" 2>&1 & started+=($!)
for worker in 1 2; do
  "$programs/dask" worker "tcp://127.0.0.1:$port" --host 127.0.0.1 --nthreads 1 --no-nanny --no-dashboard \
    --local-directory "$folder/worker-$worker" > "$folder/worker-$worker.log" 2>&1 & started+=($!)
done
for ((i = 0; i < 150; i++)); do [[ -s "$folder/agent.port" ]] && break; sleep 0.2; done

python3 - "$cases" > cases.json <<'PY'
import json, sys
json.dump([{"id": f"c{n}", "input": {"user": f"question {n}"}} for n in range(int(sys.argv[1]))], sys.stdout)
PY
url="http://127.0.0.1:$(cat "$folder/agent.port")"
counterproof run --cases cases.json --side baseline --base-url "$url" --run-id first 2> "$folder/baseline.log" > /dev/null
counterproof batch dask --cases cases.json --shards "$shards" -- --base-url "$url" > batch.py
timeout 300 "$programs/python" batch.py "tcp://127.0.0.1:$port" night > "$folder/night.log" 2>&1 || { cat "$folder/night.log" >&2; exit 1; }
counterproof validate runs/new/night > /dev/null
answers=$(find runs/new/night -maxdepth 1 -name 'c*.json' | wc -l)
[[ $answers == "$cases" ]] || { echo "$answers of $cases answers" >&2; exit 1; }
echo "$cases cases in $shards shards on two workers, merged and compared"
