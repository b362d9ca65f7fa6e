"""Relays both directions of a command line by line. A stand-in for the guard that shows what the comparison detects.

Usage: relay.py faithful|reserialise|drop|swap -- COMMAND [ARGUMENT…]

`reserialise` parses each message and writes it again, which keeps its meaning and changes its bytes. `drop` loses each
notification of progress. `swap` replaces one character of each result that contains it.
"""

import json
import os
import subprocess
import sys
import threading

FAULTS = {
    "faithful": lambda line: line,
    "reserialise": lambda line: json.dumps(json.loads(line)).encode() + b"\n",
    "drop": lambda line: b"" if b"notifications/progress" in line else line,
    "swap": lambda line: line.replace("ü".encode(), b"u"),
}


def relay(source, target, fault):
    for line in source:
        target.write(fault(line))
        target.flush()
    target.close()


fault = FAULTS[sys.argv[1]]
child = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
threading.Thread(target=relay, args=(sys.stdin.buffer, child.stdin, FAULTS["faithful"]), daemon=True).start()
relay(child.stdout, sys.stdout.buffer, fault)
os._exit(child.wait())
