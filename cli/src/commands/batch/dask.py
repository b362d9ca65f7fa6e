"""Runs {{CASES}} in {{SHARDS}} shards on a Dask cluster, then merges them and compares the run.

Start it in the folder of the cases, which all workers see: python THIS_FILE SCHEDULER_ADDRESS [RUN_ID]
A task that Dask starts again, because its worker is lost, goes on where the lost one was.
"""

import subprocess
import sys
import time
from pathlib import Path

from dask.distributed import Client, as_completed

SHARDS = {{SHARDS}}
RUN = {{RUN_LIST}}
FOLDER = Path({{FOLDER_TEXT}})
COMPARE = {{COMPARE_LIST}}


def run_shard(number: int, run_id: str, folder: str) -> tuple[int, int]:
    shard = ["--run-id", run_id, "--shard", f"{number}/{SHARDS}", "--take-over"]
    return number, subprocess.run([*RUN, *shard], cwd=folder, check=False).returncode


def main() -> int:
    run_id = sys.argv[2] if len(sys.argv) > 2 else {{ID_TEXT}}
    numbers = range(1, SHARDS + 1)
    with Client(sys.argv[1]) as client:
        shards = client.map(run_shard, numbers, run_id=run_id, folder=str(Path.cwd()), pure=False, retries=3)
        for future in as_completed(shards):
            # A shard whose workers were all lost is named by the merge below.
            if future.exception() is not None:
                print(f"a shard was lost: {future.exception()}", file=sys.stderr)
                continue
            number, code = future.result()
            if code != 0:
                print(f"shard {number}/{SHARDS}: exit code {code}", file=sys.stderr)
    run = str(FOLDER / run_id)
    merge = ["counterproof", "merge", "--shards", str(SHARDS), "--wait", "2m", "--out", run]
    merged = subprocess.run(merge, check=False)
    return merged.returncode or subprocess.run([*COMPARE, run], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
