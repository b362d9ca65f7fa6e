"""Runs the acceptance tests with a scripted model: `python3 tests/acceptance/run.py --counterproof PATH [NAME]…`.

It needs Python 3.10 and git, and no packages.
"""

import argparse
import copy
import os
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import acceptance  # noqa: E402
import client  # noqa: E402
import parts  # noqa: E402
from model_server import ModelServer  # noqa: E402


class TestClient(client.Client):
    """A client that knows its model."""

    def __init__(self, server, **options):
        super().__init__(model_url=server.url, **options)
        self.server = server

    def with_model(self, model):
        other = copy.copy(self)
        other.model = model
        return other


def main():
    parser = argparse.ArgumentParser(description="The acceptance tests of the workflows.")
    parser.add_argument("--counterproof", required=True, metavar="PATH", help="the program")
    parser.add_argument("--all", action="store_true", help="resume every checkpoint and compare its result")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the ledger and the repositories")
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of the names of tests [default: all tests]")
    options = parser.parse_args()
    tests = [(name, test) for module in (parts, acceptance) for name, test in vars(module).items() if name.startswith("test_")]
    tests = [(name, test) for name, test in tests if not options.names or any(part in name for part in options.names)]
    acceptance.STRIDE = 1 if options.all else acceptance.STRIDE
    failed = 0
    folder = tempfile.mkdtemp(prefix="acceptance-")
    tempfile.tempdir = folder
    with ModelServer(delay=0.5, outside=os.path.join(folder, "outside")) as server:
        program = pathlib.Path(options.counterproof).resolve()
        home = {"HOME": folder, "XDG_STATE_HOME": os.path.join(folder, "state"), "PYTHONDONTWRITEBYTECODE": "1"}
        ledger = os.path.join(folder, "ledger.db")
        client.configure(TestClient(server, program=program, ledger=ledger, environment=home))
        for name, test in tests:
            start = time.monotonic()
            try:
                test()
                result = "ok"
            except Exception:
                traceback.print_exc()
                failed += 1
                result = "FAILED"
            print(f"{name} … {result} ({time.monotonic() - start:.1f} s)", flush=True)
    if options.keep:
        print(f"kept: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
