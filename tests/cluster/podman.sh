#!/usr/bin/env bash
# Runs the pods of the printed Jobs under podman, one for each index, as a cluster would make them.
# Usage: podman.sh PROGRAM FOLDER CASES SHARDS PYTHON
set -euo pipefail
program=$1 folder=$2 cases=$3 shards=$4 python=$5
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf "$folder"
mkdir -p "$folder"/{work,root,run,image/tmp}
cat > "$folder/containers.conf" <<'CONF'
[containers]
default_ulimits=["nofile=1024:1024","nproc=1024:1024"]
[engine]
runtime="runc"
events_logger="file"
cgroup_manager="cgroupfs"
CONF
export CONTAINERS_CONF="$folder/containers.conf"
podman=(podman --root "$folder/root" --runroot "$folder/run" --storage-driver vfs)

agent=
end() {
  "${podman[@]}" pod rm --force --all > /dev/null 2>&1 || true
  [[ -z $agent ]] || kill "$agent" 2>/dev/null || true
}
trap end EXIT

# An image without a distribution: the program and the libraries that it loads.
mkdir -p "$folder/image/usr/local/bin"
cp "$program" "$folder/image/usr/local/bin/counterproof"
strip "$folder/image/usr/local/bin/counterproof" 2>/dev/null || true
for library in $(ldd "$program" | grep -o '/[^ ]*'); do cp --parents -L "$library" "$folder/image"; done
tar -C "$folder/image" -c . | "${podman[@]}" import --quiet --change 'ENV PATH=/usr/local/bin' - localhost/counterproof:latest > /dev/null

python3 "$here/agent.py" 0.01 > "$folder/agent.port" & agent=$!
for ((i = 0; i < 150; i++)); do [[ -s "$folder/agent.port" ]] && break; sleep 0.2; done
url="http://127.0.0.1:$(cat "$folder/agent.port")"
cd "$folder/work"
python3 - "$cases" > cases.json <<'PY'
import json, sys
json.dump([{"id": f"c{n}", "input": {"user": f"question {n}"}} for n in range(int(sys.argv[1]))], sys.stdout)
PY
"$program" run --cases cases.json --side baseline --base-url "$url" --run-id first 2> ../baseline.log > /dev/null
"$program" batch kubernetes --cases cases.json --shards "$shards" --run-id night --image localhost/counterproof:latest -- \
  --base-url "$url" > ../batch.yaml

# A Job is no pod: its template becomes one for each index, with the variable that Kubernetes sets and the folder as the claim.
"$python" - ../batch.yaml "$PWD" ../shards.yaml ../result.yaml <<'PY'
import copy, sys, yaml
shards, result = yaml.safe_load_all(open(sys.argv[1]))
def pod(job, name, index=None):
    spec = copy.deepcopy(job["spec"]["template"]["spec"])
    for volume in spec["volumes"]:
        del volume["persistentVolumeClaim"]
        volume["hostPath"] = {"path": sys.argv[2], "type": "Directory"}
    for container in spec["containers"] + spec.get("initContainers", []):
        container["imagePullPolicy"] = "Never"
        if index is not None:
            container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "value": str(index)})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
yaml.safe_dump_all([pod(shards, f"night-{index}", index) for index in range(shards["spec"]["completions"])], open(sys.argv[3], "w"))
yaml.safe_dump(pod(result, "night-result"), open(sys.argv[4], "w"))
PY
"${podman[@]}" kube play --network=host ../shards.yaml > /dev/null
"${podman[@]}" kube play --network=host ../result.yaml > /dev/null
# The code of the comparison, or nothing after five minutes.
code=$(timeout 300 "${podman[@]}" wait night-result-result || true)
for index in $(seq 0 $((shards - 1))); do "${podman[@]}" logs "night-$index-shard" > "../shard-$index.log" 2>&1 || true; done
"${podman[@]}" logs night-result-result > ../result.log 2>&1
[[ $code == 0 ]] || { cat ../shard-*.log ../result.log >&2; echo "the last pod ended with ${code:-no code}" >&2; exit 1; }
"$program" validate runs/new/night > /dev/null
answers=$(find runs/new/night -maxdepth 1 -name 'c*.json' | wc -l)
[[ $answers == "$cases" ]] || { echo "$answers of $cases answers" >&2; exit 1; }
echo "$cases cases in $shards pods under podman, merged and compared"
