"""Planted bottlenecks of a real device: they run where the program can use a GPU (bank.py --device).

The device's clocks are nobody's to change for a test, so nothing here is throttled: that rule has the unit tests and
the fake NVML library."""

from typing import List

from plants import BATCH, HEALTHY_STEP, RAW, Healthy, Plant, Settings, lose, microseconds, rate, text

DEVICE_BATCH = 32
SAMPLE_BYTES = 32 * 32 * 3 * 4
# Large products: the device computes all the time, and its input could feed many times as much.
COMPUTES: Settings = {
    **RAW, "read.engine": "memory", "step.backend": "cuda", "step.model": "resnet50", "step.precision": "bf16",
    "step.graph": "on", "batch.size": str(DEVICE_BATCH), "decode.workers": "4", "prefetch.depth": "4",
}
# Products of a few microseconds, launched one by one.
TINY: Settings = {**COMPUTES, "step.model": "mlp", "step.graph": "off", "batch.size": str(BATCH)}
# Workers that wait elsewhere are the limit, and the device is hardly used.
WAITS: Settings = {**COMPUTES, "decode.workers": "4", "inject.decode_wait": "10ms"}


def device_plants() -> List[Plant]:
    return [
        Plant(
            "gpu-launch", "the step's thread works before it launches", COMPUTES, [("step", "launch")],
            lambda aim, h: {"inject.step_launch": microseconds(DEVICE_BATCH / lose(h, aim))},
            intensities=(1.5, 4.0), healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "gpu-copy", "copies at a fraction of the link's rate", COMPUTES, [("upload", "copy")],
            lambda aim, h: {"inject.upload_bandwidth": rate(lose(h, aim) * SAMPLE_BYTES)},
            intensities=(1.5, 4.0), healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "gpu-starve", "workers that wait for a service elsewhere", COMPUTES, [("decode", "wait")],
            lambda aim, h: {"inject.decode_wait": microseconds(4 / lose(h, aim))},
            intensities=(1.5, 4.0), healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "gpu-storage", "token bucket on reads", {**COMPUTES, "read.engine": "auto"}, [("read", "device")],
            lambda aim, h: {"inject.read_bandwidth": rate(lose(h, aim) * h.file_bytes)},
            intensities=(1.5, 4.0), healthy_truth=HEALTHY_STEP,
        ),
        Plant(
            "gpu-compute", "every step takes longer", WAITS, [("step", "compute")],
            lambda aim, h: {"inject.step_factor": text(max(1.0, aim * gap(h)))},
            intensities=(1.5, 4.0),
        ),
    ]


def gap(healthy: Healthy) -> float:
    """How many times as long a step may take before it is felt: unknown before it is tried; the bank corrects it."""
    return 4.0 if healthy.throughput > 0 else 1.0


def device_controls() -> List[Plant]:
    def control(name: str, what: str, base: Settings, truth) -> Plant:
        return Plant(name, what, base, truth, lambda aim, h: {}, kind="control", intensities=(1.0,))

    return [
        control("gpu-healthy", "large products, recorded as a graph", COMPUTES, HEALTHY_STEP),
        control("gpu-plain", "large products, launched one by one, some ahead", {**COMPUTES, "step.graph": "off"}, HEALTHY_STEP),
        control("gpu-tiny", "tiny products, each launched and waited for", {**TINY, "batch.size": "1", "step.ahead": "0"},
                [("step", "launch")]),
    ]
