#!/usr/bin/env python3
"""A small server of a folder for NFSv4.0 and NFSv3, read-only, that misbehaves on demand.

    fake_server.py FOLDER [--port N] [--fault KIND]... [--ready FILE]

It exports FOLDER as /export on 127.0.0.1.  With port 0 it takes a free one, and writes it to FILE.
Kinds of faults:
    stale       the first READ by a file's handle says that the handle is stale
    stale-ever  every READ says so
    secret      files with "secret" in their names may not be read (EACCES)
    delay       the first READ of each file is put off (NFS4ERR_DELAY)
    slow=MS     each reply comes that much later
    close=N     the connection is closed at every Nth call instead of an answer
    mute=N      after N calls nothing is answered any more, on any connection
    forget=N    every Nth call is forgotten
    long        READ sends more bytes than were asked for
    huge        READ claims 4 GiB
    short       READ sends half of what was asked for
    shrunk      files end after 100,000 bytes, whatever their attributes say
    cut         replies to READ end in the middle, by their own marker
    garbage     replies are random bytes behind a marker of their size
    noise       random bytes without a marker
    fragments   replies come in two fragments
    empty-last  replies come in two fragments, of which the last is empty
    names       listings have a name with a '/' in it
    loop        listings never end
    v3          the server knows only NFSv3, and has the mount program at the same port
    bare        NFSv3 without attributes where they are optional
    noplus      NFSv3 without READDIRPLUS (NOTSUPP), as unfs3 is
    version     the server knows only NFSv2
"""
import argparse
import os
import random
import socket
import stat
import struct
import sys
import threading
import time

GETATTR, GETFH, LOOKUP, PUTFH, PUTROOTFH, READ, READDIR = 9, 10, 15, 22, 24, 25, 26
LAST = 0x80000000


def u32(*values):
    return struct.pack(">%dI" % len(values), *values)


def u64(*values):
    return struct.pack(">%dQ" % len(values), *values)


def opaque(data):
    return u32(len(data)) + data + bytes(-len(data) % 4)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, size):
        self.at += size
        return self.data[self.at - size : self.at]

    def u32(self):
        return struct.unpack(">I", self.bytes(4))[0]

    def u64(self):
        return struct.unpack(">Q", self.bytes(8))[0]

    def opaque(self):
        size = self.u32()
        data = self.bytes(size)
        self.at += -size % 4
        return data


class Status(Exception):
    pass


class Server:
    def __init__(self, folder, faults):
        self.root = os.path.realpath(folder)
        self.faults = faults
        self.calls = 0
        self.lock = threading.Lock()
        self.paths = {}  # of handles of NFSv3
        self.seen = set()  # files whose first READ has come

    def has(self, fault):
        return fault in self.faults

    # Handles are paths, relative to a root above the folder, which is called "export" there.
    def path(self, handle):
        name = handle.decode("utf-8", "surrogateescape")
        if name == "/":
            return None
        return self.root + name[len("/export") :]

    def attributes(self, handle, words):
        path = self.path(handle)
        try:
            st = os.lstat(path) if path else None
        except OSError:
            raise Status(2)
        kind = 2 if not st or stat.S_ISDIR(st.st_mode) else 5 if stat.S_ISLNK(st.st_mode) else 1
        wanted = [bit for bit in range(64) if words[bit // 32] >> bit % 32 & 1]
        out, mask = b"", [0, 0]
        for bit in wanted:
            value = {
                1: u32(kind),
                4: u64(st.st_size if st else 0),
                8: u64(1, 2),
                11: u32(0),
                20: u64(st.st_ino if st else 1),
                30: u64(65536),
                53: u64(int(st.st_mtime) if st else 0) + u32(0),
            }.get(bit)
            if value is not None:
                out += value
                mask[bit // 32] |= 1 << bit % 32
        return u32(2, *mask) + opaque(out)

    def first(self, what):
        with self.lock:
            new = what not in self.seen
            self.seen.add(what)
            return new

    def read(self, handle, args):
        args.bytes(16)
        offset, count = args.u64(), args.u32()
        path = self.path(handle)
        if not path or os.path.isdir(path):
            raise Status(21)
        if self.has("stale-ever") or (self.has("stale") and offset > 0 and self.first(handle)):
            raise Status(70)
        if self.has("secret") and b"secret" in handle:
            raise Status(13)
        if self.has("delay") and self.first(handle):
            raise Status(10008)
        try:
            with open(path, "rb") as f:
                f.seek(offset)
                data = f.read(min(count, 65536))
                end = f.read(1) == b""
                if self.has("shrunk"):
                    data, end = data[: max(100000 - offset, 0)], offset + len(data) >= 100000 or end
        except OSError as e:
            raise Status(e.errno)
        if self.has("short") and len(data) > 1:
            data, end = data[: len(data) // 2], False
        if self.has("long"):
            data += bytes(count - len(data) + 4096)
        if self.has("huge"):
            return u32(end, 0xFFFFFFFF) + data
        return u32(end) + opaque(data)

    def list(self, handle, args):
        cookie = args.u64()
        args.bytes(8 + 8)
        words = [args.u32() for _ in range(args.u32())] + [0, 0]
        path = self.path(handle)
        names = sorted(os.listdir(path)) if path else ["export"]
        if self.has("names"):
            names.append("a/../../etc/passwd.ppm")
        begin = 0 if self.has("loop") or cookie == 0 else cookie - 2
        out = bytes(8)
        for i, name in enumerate(names[begin : begin + 100]):
            child = handle.rstrip(b"/") + b"/" + os.fsencode(name)
            try:
                attributes = self.attributes(child, words)
            except Status:
                attributes = u32(0) + opaque(b"")
            entry = 2 if self.has("loop") else begin + i + 3
            out += u32(1) + u64(entry) + opaque(os.fsencode(name)) + attributes
        return out + u32(0, begin + 100 >= len(names) and not self.has("loop"))

    def compound(self, args):
        args.opaque()
        args.u32()
        handle, results, status, count = b"/", b"", 0, 0
        for _ in range(args.u32()):
            op, body = args.u32(), b""
            try:
                if op == PUTFH:
                    handle = args.opaque()
                elif op == PUTROOTFH:
                    handle = b"/"
                elif op == LOOKUP:
                    handle = handle.rstrip(b"/") + b"/" + args.opaque()
                    path = self.path(handle)
                    if not handle.startswith(b"/export") or not os.path.lexists(path):
                        raise Status(2)
                elif op == GETFH:
                    body = opaque(handle)
                elif op == GETATTR:
                    words = [args.u32() for _ in range(args.u32())] + [0, 0]
                    body = self.attributes(handle, words)
                elif op == READ:
                    body = self.read(handle, args)
                elif op == READDIR:
                    body = self.list(handle, args)
                else:
                    raise Status(10044)
            except Status as e:
                status = e.args[0]
            results += u32(op, status) + body
            count += 1
            if status:
                break
        return u32(status) + opaque(b"") + u32(count) + results, op == READ

    def attributes3(self, handle):
        path = self.path(handle)
        try:
            st = os.lstat(path) if path else None
        except OSError:
            raise Status(2)
        kind = 2 if not st or stat.S_ISDIR(st.st_mode) else 5 if stat.S_ISLNK(st.st_mode) else 1
        size = st.st_size if st else 0
        seconds = int(st.st_mtime) if st else 0
        return (
            u32(kind, 0o755, 1, 0, 0) + u64(size, size) + u32(0, 0) + u64(1, st.st_ino if st else 1)
            + u32(0, 0, seconds, 0, 0, 0)
        )

    def optional3(self, handle):
        return u32(0) if self.has("bare") else u32(1) + self.attributes3(handle)

    def list3(self, handle, args, plus):
        cookie = args.u64()
        names = sorted(os.listdir(self.path(handle)))
        out = self.optional3(handle) + bytes(8)
        for i, name in enumerate(names[cookie : cookie + 100]):
            child = handle + b"/" + os.fsencode(name)
            out += u32(1) + u64(i + 1) + opaque(os.fsencode(name)) + u64(cookie + i + 1)
            if plus:
                out += self.optional3(child)
                out += u32(0) if self.has("bare") else u32(1) + opaque(self.short(child))
        return out + u32(0, cookie + 100 >= len(names))

    # Handles of NFSv3 have 64 bytes at most: numbers of paths.
    def short(self, path):
        with self.lock:
            self.paths.setdefault(path, len(self.paths))
        return u32(self.paths[path])

    def long(self, handle):
        with self.lock:
            for path, number in self.paths.items():
                if u32(number) == handle:
                    return path
        raise Status(10001)

    def procedure3(self, program, procedure, args):
        try:
            if program == 100005:
                path = args.opaque().rstrip(b"/")
                if not path.startswith(b"/export") or not os.path.isdir(self.path(path)):
                    raise Status(2)
                return u32(0) + opaque(self.short(path)) + u32(1, 1)
            handle = self.long(args.opaque())
            if procedure == 1:
                return u32(0) + self.attributes3(handle)
            if procedure == 3:
                child = handle + b"/" + args.opaque()
                if not os.path.lexists(self.path(child)):
                    raise Status(2)
                return u32(0) + opaque(self.short(child)) + self.optional3(child) + u32(0)
            if procedure == 6:
                body = self.read(handle, Reader(bytes(16) + args.data[args.at :]))
                size = struct.unpack(">I", body[4:8])[0]
                return u32(0) + self.optional3(handle) + u32(size) + body
            if procedure == 17 and self.has("noplus"):
                raise Status(10004)
            if procedure in (16, 17):
                return u32(0) + self.list3(handle, args, procedure == 17)
            if procedure == 19:
                limits = u32(65536, 65536, 1, 65536, 65536, 1, 65536) + u64(1 << 40) + u32(0, 1, 0)
                return u32(0) + self.optional3(handle) + limits
        except Status as e:
            return u32(e.args[0], 0, 0)
        return u32(10004)

    def answer(self, record):
        """The reply to a record, as it goes over the wire; b"": none; None: the connection is closed."""
        args = Reader(record)
        xid = args.u32()
        args.bytes(8)
        program, version, procedure = args.u32(), args.u32(), args.u32()
        for _ in range(2):
            args.u32()
            args.opaque()
        with self.lock:
            self.calls += 1
            calls = self.calls
        if calls % int(self.faults.get("close", 1 << 60)) == 0:
            return None
        if calls > int(self.faults.get("mute", 1 << 60)):
            return b""
        if calls % int(self.faults.get("forget", 1 << 60)) == 0:
            return b""
        time.sleep(float(self.faults.get("slow", 0)) / 1000)
        head = u32(xid, 1, 0, 0, 0)
        only3 = self.has("v3")
        if program == 100005 and not only3 or program not in (100003, 100005):
            return self.marked(head + u32(1))
        if only3 and version == 4:
            return self.marked(head + u32(2, 3, 3))
        if only3 and procedure != 0:
            return self.marked(head + u32(0) + self.procedure3(program, procedure, args))
        if version != 4 or self.has("version"):
            return self.marked(head + u32(2, 2, 2))
        if procedure == 0:
            return self.marked(head + u32(0))
        body, is_read = self.compound(args)
        body = head + u32(0) + body
        # The client is let in, so that it meets the fault where it reads.
        if is_read and self.has("cut"):
            body = body[: len(body) // 2]
        if is_read and self.has("garbage"):
            body = u32(xid) + random.randbytes(len(body))
        if is_read and self.has("noise"):
            return random.randbytes(4096)
        if self.has("fragments"):
            half = len(body) // 2
            return u32(half) + body[:half] + self.marked(body[half:])
        if self.has("empty-last"):
            return u32(len(body)) + body + self.marked(b"")
        return self.marked(body)

    @staticmethod
    def marked(body):
        return u32(LAST | len(body)) + body

    def serve(self, connection):
        stream = connection.makefile("rb")
        try:
            while True:
                marker = stream.read(4)
                if len(marker) < 4:
                    break
                record = stream.read(struct.unpack(">I", marker)[0] & ~LAST)
                reply = self.answer(record)
                if reply is None:
                    break
                connection.sendall(reply)
        except (OSError, struct.error):
            pass
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        connection.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--fault", action="append", default=[])
    parser.add_argument("--ready")
    args = parser.parse_args()
    random.seed(1)
    faults = dict((fault.split("=") + [""])[:2] for fault in args.fault)
    server = Server(args.folder, faults)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", args.port))
    listener.listen(64)
    if args.ready:
        with open(args.ready + ".new", "w") as f:
            f.write("%d\n" % listener.getsockname()[1])
        os.rename(args.ready + ".new", args.ready)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=server.serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
