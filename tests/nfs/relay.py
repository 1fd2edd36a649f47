#!/usr/bin/env python3
"""A TCP relay that is slow, or dead, on demand.

    relay.py --listen 127.0.0.1:2050 --to 127.0.0.1:2049 [--latency MS]

What comes in goes out MS milliseconds later, in either direction, however much is on the way: a longer
cable, and no slower one.  Signals: USR1, it stops passing anything on, and connections stay (a server
that hangs); USR2, it passes on again; HUP, it breaks all connections.
"""
import argparse
import asyncio
import collections
import os
import signal


class Relay:
    def __init__(self, to, delay):
        self.to = to
        self.delay = delay
        self.passing = asyncio.Event()
        self.passing.set()
        self.writers = set()

    async def carry(self, reader, writer):
        """Reads at once and writes when it is time: two tasks with a queue between them."""
        loop = asyncio.get_running_loop()
        queue = collections.deque()
        more = asyncio.Event()
        room = asyncio.Event()
        held = 0

        async def write():
            nonlocal held
            while True:
                while not queue:
                    more.clear()
                    await more.wait()
                at, data = queue.popleft()
                wait = at - loop.time()
                if wait > 0:
                    await asyncio.sleep(wait)
                await self.passing.wait()
                if not data:
                    writer.close()
                    return
                held -= len(data)
                room.set()
                writer.write(data)
                await writer.drain()

        async def read():
            nonlocal held
            while True:
                try:
                    data = await reader.read(1 << 18)
                except OSError:
                    data = b""
                queue.append((loop.time() + self.delay, data))
                held += len(data)
                more.set()
                if not data:
                    return
                while held > 64 << 20:
                    room.clear()
                    await room.wait()

        try:
            await asyncio.gather(read(), write())
        except OSError:
            writer.close()

    async def serve(self, reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection(*self.to)
        except OSError:
            writer.close()
            return
        self.writers |= {writer, to_writer}
        await asyncio.gather(self.carry(reader, to_writer), self.carry(to_reader, writer))
        self.writers -= {writer, to_writer}

    def break_all(self):
        for writer in self.writers:
            writer.transport.abort()


def place(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", type=place, required=True)
    parser.add_argument("--to", type=place, required=True)
    parser.add_argument("--latency", type=float, default=0, help="milliseconds, each direction")
    args = parser.parse_args()
    try:
        os.nice(-15)  # a cable waits for no core
    except OSError:
        pass
    relay = Relay(args.to, args.latency / 1000)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, relay.passing.clear)
    loop.add_signal_handler(signal.SIGUSR2, relay.passing.set)
    loop.add_signal_handler(signal.SIGHUP, relay.break_all)
    server = await asyncio.start_server(relay.serve, *args.listen)
    async with server:
        await server.serve_forever()


asyncio.run(main())
