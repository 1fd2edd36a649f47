#!/usr/bin/env python3
"""The far end of a shaped link: serves SFTP on a TCP port without encryption, for `sshfs -o directport`.  Every answer
can be held back for a time, as by a long way (netem is not in every kernel).

    sftp_link.py ADDRESS PORT DELAY_S [SERVER]"""

import collections
import ctypes
import signal
import socket
import subprocess
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
SERVER = "/usr/lib/openssh/sftp-server"
CHUNK = 1 << 18


def delayed(source, sink, delay_s: float) -> None:
    """Copies what comes, each piece so much later, however many are on their way."""
    pieces, more = collections.deque(), threading.Condition()

    def take() -> None:
        while True:
            piece = source(CHUNK)
            with more:
                pieces.append((time.monotonic() + delay_s, piece))
                more.notify()
            if not piece:
                return

    threading.Thread(target=take, daemon=True).start()
    while True:
        with more:
            while not pieces:
                more.wait()
            due, piece = pieces.popleft()
        if not piece:
            return
        time.sleep(max(0.0, due - time.monotonic()))
        sink(piece)


def serve(connection: socket.socket, delay_s: float, server: str) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if delay_s <= 0:
        subprocess.Popen([server, "-R"], stdin=connection, stdout=connection)
        connection.close()
        return
    far = subprocess.Popen([server, "-R"], stdin=connection, stdout=subprocess.PIPE, bufsize=0)
    try:
        delayed(far.stdout.read, connection.sendall, delay_s)
    except OSError:
        pass  # the other end is gone
    far.kill()


def main(arguments) -> int:
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.create_server((arguments[0], int(arguments[1])))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, float(arguments[2]), (arguments[3:] or [SERVER])[0]), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
