#!/usr/bin/env python3
"""Finds the safe-run program and replaces itself with it. Contract: M0-v0.1.0

Passes arguments, streams, environment and exit code through unchanged.
Uses the first of these that exists:
  1. $SAFE_RUN_BIN, without a check
  2. <root>/rust/target/release/safe-run, <root>/target/release/safe-run
  3. <root>/dist/<linux|macos|windows>/<x86_64|aarch64>/safe-run
  4. safe-run on the PATH
<root> is the nearest folder above this file that contains .git or RFC-Shared-Agent-Scaffolding-v0.1.0.md.
Exit codes: 127 if none exists; 126 if the one in $SAFE_RUN_BIN cannot be executed.
"""

import os
import signal
import sys


def become(program, arguments):
    # Python ignores SIGPIPE, and the command would inherit that.
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if os.name == "nt":
        import subprocess

        sys.exit(subprocess.call([program, *arguments]))
    # Like a shell, searches the PATH for a name without a slash.
    os.execvp(program, [program, *arguments])


def platform_folder():
    system = {"linux": "linux", "darwin": "macos", "win32": "windows", "cygwin": "windows"}.get(sys.platform, sys.platform)
    if os.name == "nt":
        machine = os.environ.get("PROCESSOR_ARCHITECTURE", "")
    else:
        machine = os.uname().machine
    machine = {"AMD64": "x86_64", "arm64": "aarch64", "ARM64": "aarch64"}.get(machine, machine)
    return system, machine


def is_program(path):
    return os.path.isfile(path) and os.access(path, os.X_OK)


def main():
    arguments = sys.argv[1:]
    named = os.environ.get("SAFE_RUN_BIN")
    if named:
        try:
            become(named, arguments)
        except FileNotFoundError as error:
            print(f"ERROR: SAFE_RUN_BIN: {named}: {error.strerror}", file=sys.stderr)
            return 127
        except OSError as error:
            print(f"ERROR: SAFE_RUN_BIN: {named}: {error.strerror}", file=sys.stderr)
            return 126

    root = os.path.dirname(os.path.realpath(__file__))
    marks = (".git", "RFC-Shared-Agent-Scaffolding-v0.1.0.md")
    while not any(os.path.exists(os.path.join(root, mark)) for mark in marks) and os.path.dirname(root) != root:
        root = os.path.dirname(root)

    system, machine = platform_folder()
    name = "safe-run.exe" if system == "windows" else "safe-run"
    places = [
        os.path.join(root, "rust", "target", "release", name),
        os.path.join(root, "target", "release", name),
        os.path.join(root, "dist", system, machine, name),
    ]
    folders = os.environ.get("PATH", "").split(os.pathsep)
    on_path = [os.path.join(folder or ".", name) for folder in folders]
    for place in places + on_path:
        # Skips this file, which can have the name of the program.
        if is_program(place) and not os.path.samefile(place, __file__):
            become(place, arguments)

    lines = ["ERROR: Rust canonical tool not found.", "Searched, in this order:", "  1. SAFE_RUN_BIN (not set)"]
    lines += [f"  {number}. {place}" for number, place in enumerate(places, start=2)]
    lines += [f"  {len(places) + 2}. safe-run on the PATH"]
    lines += ["Hint: build it with 'cargo build --release', or set SAFE_RUN_BIN to where it is"]
    print("\n".join(lines), file=sys.stderr)
    return 127


if __name__ == "__main__":
    sys.exit(main())
