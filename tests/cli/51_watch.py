"""Drives `mlbench ... --watch` on a pseudo-terminal of its own, and says what came of it.

usage: 51_watch.py SCENARIO COMMAND...   scenarios: quit, frozen, stopped-output, crash, hangup, small
Prints one line of JSON: status (as subprocess has it), seconds, same_modes, entered, left (of the alternate screen).
The view is read back through a terminal emulator only by tmux (51_watch.sh); here it is about bytes and modes.
"""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

scenario, command = sys.argv[1], sys.argv[2:]
main, sub = pty.openpty()
rows, columns = (6, 30) if scenario == "small" else (30, 100)
fcntl.ioctl(sub, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
before = termios.tcgetattr(sub)
out = open("watched.out", "wb")
stdout = out if scenario in ("frozen", "stopped-output") else sub
# A message to a terminal that takes nothing would wait, as that of any program.
stderr = open("watched.err", "wb") if stdout is out else sub


def own_terminal():
    os.setsid()
    fcntl.ioctl(sub, termios.TIOCSCTTY, 0)


begun = time.monotonic()
child = subprocess.Popen(command, stdin=sub, stdout=stdout, stderr=stderr, preexec_fn=own_terminal,
                         env={**os.environ, "TERM": "xterm-256color"})
seen = b""


def read_for(seconds, until=None):
    global seen
    end = time.monotonic() + seconds
    while time.monotonic() < end and child.poll() is None:
        if select.select([main], [], [], 0.05)[0]:
            seen += os.read(main, 65536)
            if until and until in seen:
                return True
    return until is None


entered = read_for(300, b"\x1b[?1049h")
if scenario == "small":
    for size in ((1, 1), (2, 200), (300, 7), (24, 80)):
        fcntl.ioctl(sub, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        child.send_signal(signal.SIGWINCH)
        read_for(0.4)
    for key in (b"?", b"p", b"?", b"p", b"\x1b[A", b"\xff", b"x"):
        os.write(main, key)
        read_for(0.1)
if scenario in ("quit", "small"):
    read_for(0.7)
    os.write(main, b"q")
    read_for(300)
elif scenario == "crash":
    read_for(0.7)
    child.send_signal(signal.SIGSEGV)
    read_for(300)
elif scenario == "stopped-output":  # Ctrl-S: the terminal takes nothing any more until Ctrl-Q
    os.write(main, b"\x13")
    read_for(300)
elif scenario == "frozen":  # nobody reads: its buffer fills
    fcntl.ioctl(sub, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 400, 0, 0))
    child.send_signal(signal.SIGWINCH)
    end = time.monotonic() + 300
    while time.monotonic() < end and child.poll() is None:
        time.sleep(0.05)
elif scenario == "hangup":
    read_for(0.7)
    os.close(main)
try:
    status = child.wait(timeout=300)
except subprocess.TimeoutExpired:
    child.kill()
    status = "hangs"
seconds = time.monotonic() - begun
same = None
if scenario != "hangup":
    same = termios.tcgetattr(sub) == before
    while select.select([main], [], [], 0.2)[0]:
        seen += os.read(main, 65536)
print(json.dumps({"status": status, "seconds": round(seconds, 1), "same_modes": same, "entered": entered,
                  "left": seen.rfind(b"\x1b[?1049l") > seen.rfind(b"\x1b[?1049h") >= 0,
                  "warned": b"warning" in seen[seen.rfind(b"\x1b[?1049l"):]}))
