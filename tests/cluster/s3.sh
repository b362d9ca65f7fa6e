#!/usr/bin/env bash
# Runs cases into a bucket of a server that speaks the protocol of S3, through a proxy that fails every tenth request. Checks that
# the run has the answers of a run on this machine, also after the process was killed; that of 16 processes that take one shard
# over, each case is in the merged run once; that a bucket without rights costs no answer; and that a packed run has equal bytes.
# Usage: s3.sh PROGRAM FOLDER CASES PYTHON_FOLDER. Listens on loopback only, and ends only what it started.
set -euo pipefail
program=$1 folder=$2 cases=$3 python=$4/python
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH="$(dirname "$program"):$PATH"
rm -rf "$folder"
mkdir -p "$folder"/{log,tmp}
cd "$folder"
# The working copies, to see that none is left behind.
export TMPDIR=$folder/tmp
for variable in $(env | sed -n 's/^\(AWS_[A-Z0-9_]*\)=.*/\1/p'); do unset "$variable"; done
unset HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy

started=()
end() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
}
trap end EXIT
wait_for() { # SECONDS WHAT COMMAND…
  local seconds=$1 what=$2; shift 2
  for ((i = 0; i < seconds * 10; i++)); do "$@" && return; sleep 0.1; done
  echo "$what did not happen in $seconds s" >&2
  exit 1
}
fail() { echo "FAILED: $*" >&2; exit 1; }
must_end_with() { # CODE LOG COMMAND…
  local expected=$1 log=log/$2 code=0; shift 2
  "$@" > "$log.out" 2> "$log" || code=$?
  [[ $code == "$expected" ]] || { cat "$log" >&2; fail "exit code $code instead of $expected: $*"; }
}

server=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$python" -m moto.server -H 127.0.0.1 -p "$server" > log/server 2>&1 & started+=($!)
echo pass > mode
"$python" "$here/faulty_proxy.py" "$server" "$folder/mode" > proxy.port 2> log/proxy & started+=($!)
"$python" "$here/agent.py" 0.05 > agent.port 2> log/agent & started+=($!)
ready() { [[ -s proxy.port && -s agent.port ]] && "$python" - "$server" 2>/dev/null <<'PY'
import sys, urllib.request
urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/agents", method="PUT"))
PY
}
wait_for 60 "the start of the servers" ready
export AWS_ENDPOINT_URL="http://127.0.0.1:$(cat proxy.port)" AWS_ALLOW_HTTP=true AWS_REGION=us-east-1
export AWS_ACCESS_KEY_ID=AKIDSECRETID AWS_SECRET_ACCESS_KEY=a-secret-of-the-test
url="http://127.0.0.1:$(cat agent.port)"
"$python" - "$cases" > cases.json <<'PY'
import json, sys
json.dump([{"id": f"c{n}", "input": {"user": f"question {n}"}} for n in range(int(sys.argv[1]))], sys.stdout)
PY
run=(counterproof run --cases cases.json --base-url "$url")
# Slow enough to be stopped in the middle.
slow=("${run[@]}" --rate 20/s)
objects() { # PREFIX FOLDER: copies the objects below a prefix without the program under test
  "$python" - "http://127.0.0.1:$server" "$1" "$2" <<'PY'
import pathlib, sys
import boto3
endpoint, prefix, folder = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url=endpoint)
for page in s3.get_paginator("list_objects_v2").paginate(Bucket="agents", Prefix=prefix + "/"):
    for item in page.get("Contents", []):
        file = pathlib.Path(folder, item["Key"].removeprefix(prefix + "/"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(s3.get_object(Bucket="agents", Key=item["Key"])["Body"].read())
PY
}
same_answers() { # FOLDER FOLDER: the same files, the same answers, and a complete run
  "$python" - "$1" "$2" <<'PY'
import json, pathlib, sys
def read(folder):
    root = pathlib.Path(folder)
    names = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and not path.name.startswith(".")} - {"evaluation.json"}
    answers = {path.stem: json.loads(path.read_text())["final_output"] for path in root.glob("c*.json")}
    return names, answers, json.loads((root / "run.json").read_text())["stats"]["cases_completed"]
local, bucket = map(read, sys.argv[1:])
assert local == bucket, f"{len(local[1])} answers of {local[2]} cases, {len(bucket[1])} of {bucket[2]}; {sorted(local[0] ^ bucket[0])[:5]}"
PY
}

# A run of this machine, and one in the bucket with every tenth request failing.
"${run[@]}" --side baseline --run-id first 2> log/first > /dev/null
"${run[@]}" --side new --run-id whole 2> log/whole > /dev/null
echo faulty > mode
must_end_with 0 faulty "${run[@]}" --side new --run-id faulty --out s3://agents/runs --concurrency 16
objects runs/new/faulty faulty
same_answers runs/new/whole faulty
echo "$cases cases in a bucket of which every tenth request fails; requests and faults: $(cat mode.counts)"

# A process that is killed in the middle, and resumed.
"${slow[@]}" --side new --run-id killed --out s3://agents/runs 2> log/killed > /dev/null & killed=$!
has_some() { rm -rf "peek$1" && objects "runs/new/$1" "peek$1" && [[ $(find "peek$1" -name 'c*.json' 2>/dev/null | wc -l) -gt $((cases / 8)) ]]; }
wait_for 120 "an eighth of the answers" has_some killed
kill -9 $killed
wait $killed 2>/dev/null || true
rm -rf tmp/*
must_end_with 0 resumed "${slow[@]}" --side new --resume killed --out s3://agents/runs
grep -q 'completed earlier' log/resumed || fail "nothing was resumed: $(cat log/resumed)"
objects runs/new/killed killed
same_answers runs/new/whole killed
echo "resumed after a kill: $(head -1 log/resumed)"

# Sixteen processes take one shard over, one after the other.
for n in $(seq 16); do
  (code=0; "${run[@]}" --side new --run-id race --shard 1/1 --take-over --out s3://agents/runs > "log/race$n.out" 2> "log/race$n" || code=$?
   echo "$code" > "race$n.code") & started+=($!)
  sleep 0.3
done
all_done() { [[ $(ls race*.code 2>/dev/null | wc -l) == 16 ]]; }
wait_for 600 "the end of 16 processes" all_done
codes=$(sort race*.code | uniq -c | tr '\n' ';')
[[ -z "$(cat race*.code | grep -vx '[03]')" ]] || fail "exit codes $codes: $(cat log/race*)"
grep -qx 0 race*.code || fail "no process finished the shard: $codes"
must_end_with 0 merged counterproof merge --shards 1 --wait 1m --out s3://agents/runs/new/race
objects runs/new/race race
same_answers runs/new/whole race
attempts=$("$python" - "http://127.0.0.1:$server" <<'PY'
import sys, boto3
s3 = boto3.client("s3", endpoint_url=sys.argv[1])
keys = [item["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket="agents", Prefix="runs/new/race-s1of1") for item in page["Contents"]]
claims = [key for key in keys if key.endswith("/.claim")]
assert not [key for key in keys if "/.claim-check" in key], "a probe is left behind"
print(len(claims))
PY
)
echo "16 processes at one shard: $attempts attempts, number of exit codes: $codes $(head -1 log/merged)"

# The same verdicts from the bucket as from this machine, and a packed run.
must_end_with 0 local counterproof compare --cases cases.json --baseline runs/baseline/first --new runs/new/whole --no-write-back --out local --pages none
must_end_with 0 bucket counterproof compare --cases cases.json --baseline runs/baseline/first --new s3://agents/runs/new/race --out bucket --pages none
same_verdicts() { # REPORT REPORT
  "$python" - "$@" <<'PY'
import json, pathlib, sys
cases = [[[case["case_id"], case["verdict"], case["reasons"]] for case in json.loads(pathlib.Path(report, "evaluation.json").read_text())["cases"]] for report in sys.argv[1:]]
assert cases[0] == cases[1] and cases[0]
PY
}
same_verdicts local bucket
complete=$("$python" - "http://127.0.0.1:$server" <<'PY'
import json, sys, boto3
s3 = boto3.client("s3", endpoint_url=sys.argv[1])
keys = [item["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket="agents", Prefix="runs/new/race-s1of1") for item in page["Contents"]]
documents = {key: json.loads(s3.get_object(Bucket="agents", Key=key)["Body"].read()) for key in keys if key.endswith("/run.json")}
print("s3://agents/" + next(key for key, run in documents.items() if run.get("stats")).removesuffix("/run.json"))
PY
)
must_end_with 0 packed counterproof merge "$complete" --pack --out s3://agents/runs/new/packed
objects runs/new/packed packed
"$python" - race packed <<'PY'
import pathlib, sys, zipfile
merged, packed = map(pathlib.Path, sys.argv[1:])
assert sorted(path.name for path in packed.iterdir()) == [".claim", "run.json", "run.zip"], list(packed.iterdir())
archive = zipfile.ZipFile(packed / "run.zip")
left_out = {".claim", "run.json", "evaluation.json"}
files = {str(path.relative_to(merged)): path.read_bytes() for path in merged.rglob("*") if path.is_file() and path.name not in left_out}
assert {name: archive.read(name) for name in archive.namelist()} == files
size = sum(map(len, files.values()))
print(f"packed: {len(files)} files of {size} bytes in one archive of {(packed / 'run.zip').stat().st_size} bytes, with equal bytes")
PY
must_end_with 0 packed-valid counterproof validate s3://agents/runs/new/packed
must_end_with 0 packed-compare counterproof compare --cases cases.json --baseline runs/baseline/first --new s3://agents/runs/new/packed --out unpacked --pages none
same_verdicts local unpacked

# A baseline in the bucket, and the latest runs of both sides.
must_end_with 0 accepted counterproof accept s3://agents/runs/new/faulty --runs s3://agents/runs --reason test
must_end_with 0 latest counterproof compare --runs s3://agents/runs --cases cases.json --out s3://agents/reports/latest
must_end_with 0 history counterproof history s3://agents/runs/new --out history
must_end_with 0 published counterproof report bucket/evaluation.json --out again --publish s3://agents/reports/again
objects reports/again published
find again -type d -empty -delete
diff -r again published
"$python" - "http://127.0.0.1:$server" <<'PY'
import sys, boto3
s3 = boto3.client("s3", endpoint_url=sys.argv[1])
types = {name: s3.head_object(Bucket="agents", Key=f"reports/latest/{name}")["ContentType"] for name in ("index.html", "evaluation.json", "static/style.css")}
assert types == {"index.html": "text/html; charset=utf-8", "evaluation.json": "application/json", "static/style.css": "text/css; charset=utf-8"}, types
PY
echo "verdicts from the bucket are those of this machine"
[[ -z "$(ls tmp)" ]] || fail "a working copy is left behind: $(ls tmp)"

# A bucket without rights: nothing is asked, or what was answered is kept.
echo deny > mode
must_end_with 3 denied "${run[@]}" --side new --run-id denied --out s3://agents/runs
grep -q 'status 403 Forbidden (AccessDenied)' log/denied && grep -q AWS_ACCESS_KEY_ID log/denied || fail "unclear: $(cat log/denied)"
[[ -z "$(ls tmp)" ]] || fail "a working copy without answers is left behind"
echo pass > mode
"${slow[@]}" --side new --run-id midway --out s3://agents/runs > log/midway.out 2> log/midway & midway=$!
wait_for 120 "an eighth of the answers" has_some midway
echo deny > mode
code=0; wait $midway || code=$?
[[ $code == 3 ]] || fail "exit code $code: $(cat log/midway)"
grep -q 'resume with: counterproof run --resume midway' log/midway || fail "no way to go on: $(cat log/midway)"
kept=$(sed -n 's/.*could not be written to the bucket are in `\(.*\)`.*/\1/p' log/midway)
[[ -d $kept && $(find "$kept" -name 'c*.json' | wc -l) -gt 0 ]] || fail "the answers are lost: $(cat log/midway)"
echo pass > mode
must_end_with 0 midway-resumed "${slow[@]}" --side new --resume midway --out s3://agents/runs
objects runs/new/midway midway
same_answers runs/new/whole midway
echo "without rights in the middle: exit code 3; $(head -1 log/midway-resumed)"

# A store that does not honour conditions cannot hold a lease.
echo unconditional > mode
must_end_with 2 no-lease "${run[@]}" --side new --run-id lease --shard 1/1 --take-over --out s3://agents/runs
grep -q 'lets two processes create the same object' log/no-lease || fail "$(cat log/no-lease)"
# Credentials are in no message, report or run.
for secret in AKIDSECRETID a-secret-of-the-test; do
  ! grep -rqs "$secret" log runs faulty killed race packed published history bucket tmp || fail "$secret is in a file"
done
