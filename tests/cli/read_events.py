#!/usr/bin/env python3
"""Reads the event files of `mlbench export --format tensorboard` without any code of mlbench: frames and checksums
here, events by a protobuf description that is made here from TensorBoard's published field numbers.
read_events.py FOLDER RESULT; --epochs FOLDER RESULT: scalars of epochs against the windows of the result.  Also by TensorBoard's own reader, where there is one."""
import glob
import json
import os
import struct
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

TABLE = []
for n in range(256):
    for _ in range(8):
        n = (n >> 1) ^ 0x82F63B78 if n & 1 else n >> 1
    TABLE.append(n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def event_class():
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="t", syntax="proto3")

    def message(name, fields):
        made = file.message_type.add(name=name)
        for field_name, number, kind, repeated, type_name in fields:
            made.field.add(name=field_name, number=number, type=kind, label=3 if repeated else 1, type_name=type_name)

    message("Metadata", [("summary_description", 3, 9, False, None)])
    message("Value", [("tag", 1, 9, False, None), ("simple_value", 2, 2, False, None), ("metadata", 9, 11, False, ".t.Metadata")])
    message("Summary", [("value", 1, 11, True, ".t.Value")])
    message("Event", [("wall_time", 1, 1, False, None), ("step", 2, 3, False, None), ("file_version", 3, 9, False, None),
                      ("summary", 5, 11, False, ".t.Summary")])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("t.Event")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


def events_of(path, event_type):
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        (size, head) = struct.unpack_from("<QI", data, at)
        assert head == masked(data[at:at + 8]), "checksum of a length"
        body = data[at + 12:at + 12 + size]
        assert len(body) == size, "torn"
        (tail,) = struct.unpack_from("<I", data, at + 12 + size)
        assert tail == masked(body), "checksum of an event"
        event = event_type()
        event.ParseFromString(body)
        yield event
        at += 16 + size


def repetitions(result):
    with open(os.path.join(result, "points.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return {(line["point"], line["repeat"]): line for line in lines if line.get("kind") == "repetition"}


def check_neighbours(times, step):
    """Rates and waits, worked out again from the saved times of steps of 8 samples."""
    ends = dict(zip(step["number"], step["end_ns"]))
    service = step["service_ns"] if isinstance(step["service_ns"], list) else [step["service_ns"]] * len(ends)
    service = dict(zip(step["number"], service))
    pairs = [n for n in ends if n - 1 in ends]
    rates, waits = dict(times["step/samples_per_s"]), dict(times["step/wait_ms"])
    assert sorted(rates) == sorted(waits) == sorted(pairs)
    for n in pairs:
        between = ends[n] - ends[n - 1]
        assert abs(rates[n] - 8e9 / between) < 1e-4 * rates[n], n
        assert abs(waits[n] - max(between - service[n], 0) / 1e6) < 1e-4, n


def check_file(path, event_type, line, traces):
    events = list(events_of(path, event_type))
    assert events[0].file_version == "brain.Event:2"
    times, described = {}, set()
    for event in events[1:]:
        assert line["started"] <= event.wall_time <= line["started"] + line["wall_seconds"] + 0.1
        for value in event.summary.value:
            times.setdefault(value.tag, []).append((event.step, value.simple_value))
            if value.metadata.summary_description:
                described.add(value.tag)
    assert set(times) == described, "every tag is described once"
    step = next(stage for stage in traces["stages"] if stage["stage"] == "step")
    steps = times["step/time_ms"]
    assert [s for s, _ in steps] == step["number"], "the steps that were recorded, each once"
    assert all(abs(v - 0.5) < 0.05 for _, v in steps), "an emulated step takes its nominal 500 us"
    check_neighbours(times, step)
    return times


def samples_at(line, t):
    """Samples through the step at t, between the windows' ends.  t comes from a time since 1970, which a double holds to
    2.4e-7 s: an epoch that ends with the last window may seem to end after it."""
    columns = line["window_columns"]
    at, before = (0.0, 0.0), None
    for row in line["windows"]:
        before, at = at, (row[columns.index("t")], row[columns.index("samples")])
        if at[0] >= t - 1e-6:
            return before[1] + (at[1] - before[1]) * (t - before[0]) / (at[0] - before[0])
    raise AssertionError("an epoch ends after the run")


def check_epochs(folder, result):
    (line,) = repetitions(result).values()
    (path,) = glob.glob(os.path.join(folder, "p*", "r*", "*tfevents*"))
    found = []
    for event in events_of(path, event_class()):
        for value in event.summary.value:
            if value.tag == "epoch/samples_per_s":
                found.append((event.step, event.wall_time - line["started"], value.simple_value))
    assert len(found) >= 2, found
    for step, end, rate in found:
        assert abs(samples_at(line, end) - 96 * (step + 1)) < 1, (step, end)
        assert abs(samples_at(line, end - 96 / rate) - 96 * step) < 1 if step else True, (step, rate)


def main():
    if sys.argv[1] == "--epochs":
        check_epochs(*sys.argv[2:4])
        return
    folder, result = sys.argv[1:3]
    event_type = event_class()
    lines = repetitions(result)
    seen = 0
    for path in glob.glob(os.path.join(folder, "p*", "r*", "*tfevents*")):
        point = int(path.split(os.sep)[-3][1:6])
        repeat = int(path.split(os.sep)[-2][1:])
        name = "traces/p%05d-r%d.json" % (point, repeat)
        with open(os.path.join(result, name), encoding="utf-8") as file:
            traces = json.load(file)
        check_file(path, event_type, lines[(point, repeat)], traces)
        seen += 1
    assert seen == len(lines), (seen, len(lines))
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        print("note: no TensorBoard here; read by a reader of the test's own")
        return
    accumulator = EventAccumulator(os.path.dirname(path))
    accumulator.Reload()
    assert "step/time_ms" in accumulator.Tags()["scalars"] + accumulator.Tags()["tensors"]


main()
