#!/usr/bin/env python3
"""Stands before an NFS server and makes it a far one, or one that serves a call at a time, or looks names up slowly.

    rpc_link.py ADDRESS PORT SERVER_PORT far SECONDS     every answer comes so much later, however many are on their way
    rpc_link.py ADDRESS PORT SERVER_PORT turns SECONDS   one call after the other, each for so long, from whatever connection
    rpc_link.py ADDRESS PORT SERVER_PORT bytes SECONDS   the same, for so long for each byte of the answer
    rpc_link.py ADDRESS PORT SERVER_PORT others SECONDS  calls of NFSv3 that are not READ take turns, each for so long; READs pass at once"""

import ctypes
import queue
import signal
import socket
import struct
import sys
import threading
import time

from sftp_link import CHUNK, PR_SET_PDEATHSIG, delayed

LAST = 0x80000000  # of a fragment's marker: the record ends with it (RFC 5531, section 11)
TURN = threading.Lock()
KIND_AT, READ = 24, 6  # in a call's record, its marker included: the procedure; which one READ is in NFSv3 (RFC 1813)


def exactly(source: socket.socket, size: int) -> bytes:
    pieces = []
    while size:
        piece = source.recv(min(size, CHUNK))
        if not piece:
            raise ConnectionError("the other end is gone")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def record(source: socket.socket) -> bytes:
    """A whole record, its markers included."""
    pieces = []
    while True:
        head = exactly(source, 4)
        marker = struct.unpack(">I", head)[0]
        pieces += [head, exactly(source, marker & ~LAST)]
        if marker & LAST:
            return b"".join(pieces)


def in_turn(client: socket.socket, server: socket.socket, seconds: float, per_byte: bool) -> None:
    while True:
        call = record(client)
        with TURN:
            began = time.monotonic()
            server.sendall(call)
            answer = record(server)
            due = began + seconds * (len(answer) if per_byte else 1)
            time.sleep(max(0.0, due - time.monotonic()))
        client.sendall(answer)


def others_in_turn(client: socket.socket, server: socket.socket, seconds: float) -> None:
    """Of one connection; what it asks of the server while others wait their turn goes on."""
    waiting: queue.Queue = queue.Queue()
    sending = threading.Lock()

    def send(call: bytes) -> None:
        with sending:
            server.sendall(call)

    def turns() -> None:
        try:
            while True:
                call = waiting.get()
                with TURN:
                    time.sleep(seconds)
                send(call)
        except OSError:
            pass  # the other end is gone

    threading.Thread(target=turns, daemon=True).start()
    threading.Thread(target=pass_on, args=(server, client), daemon=True).start()
    while True:
        call = record(client)
        is_read = struct.unpack_from(">I", call, KIND_AT)[0] == READ
        (send if is_read else waiting.put)(call)


def pass_on(source: socket.socket, sink: socket.socket) -> None:
    try:
        while piece := source.recv(CHUNK):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the other end is gone


def serve(client: socket.socket, behind, how: str, seconds: float) -> None:
    try:
        with client, socket.create_connection(behind) as server:
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if how == "others":
                others_in_turn(client, server, seconds)
            elif how != "far":
                in_turn(client, server, seconds, how == "bytes")
            threading.Thread(target=pass_on, args=(client, server), daemon=True).start()
            delayed(server.recv, client.sendall, seconds)
    except OSError:
        pass


def main(arguments) -> int:
    if len(arguments) != 5 or arguments[3] not in ("far", "turns", "bytes", "others"):
        print(__doc__, file=sys.stderr)
        return 2
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    address, port, behind, how, seconds = arguments
    listener = socket.create_server((address, int(port)))
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, (address, int(behind)), how, float(seconds)), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
