"""Starts a command and copies both directions between it and this process's standard streams.

Usage: tee.py PREFIX -- COMMAND [ARGUMENT…]

Appends the bytes that go to the command to PREFIX.in, and the bytes that come from it to PREFIX.out. Knows no messages: it
copies what it reads, in the pieces in which it reads it.
"""

import os
import signal
import subprocess
import sys
import threading

PIECE = 1 << 16


def copy(source, target, record):
    """Copies until the source ends or the target is closed. Each piece is recorded before it is passed on."""
    try:
        while piece := os.read(source, PIECE):
            record.write(piece)
            record.flush()
            while piece:
                piece = piece[os.write(target, piece):]
    except OSError:
        pass


def main():
    prefix, command = sys.argv[1], sys.argv[3:]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: child.send_signal(received))
    with open(prefix + ".in", "ab") as to_child, open(prefix + ".out", "ab") as from_child:
        def forward():
            copy(0, child.stdin.fileno(), to_child)
            try:
                child.stdin.close()
            except OSError:
                pass

        threading.Thread(target=forward, daemon=True).start()
        copy(child.stdout.fileno(), 1, from_child)
        status = child.wait()
    # A negative status is the number of a signal.
    os._exit(status if status >= 0 else 128 - status)


main()
