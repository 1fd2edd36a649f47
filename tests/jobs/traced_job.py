#!/usr/bin/env python3
"""A training job of PyTorch that torch.profiler records, with planted times: each sample sleeps before it is there, each step
sleeps before it is done.  traced_job.py TRACE --workers N; prints as JSON what the job's own clock measured around them, ms."""
import argparse
import json
import time

import torch
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

BATCH, SAMPLE_S, STEP_S, ACTIVE = 4, 0.005, 0.02, 8


class Sleepy(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(SAMPLE_S)
        return torch.zeros(3, 8, 8)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = torch.nn.Conv2d(3, 4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    batches = iter(DataLoader(Sleepy(), batch_size=BATCH, num_workers=args.workers))
    waits, periods = [], []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=ACTIVE, repeat=1),
        record_shapes=True,
        on_trace_ready=lambda p: p.export_chrome_trace(args.trace),
    ) as profiler:
        for _ in range(ACTIVE + 2):
            begun = time.perf_counter()
            batch = next(batches)
            waits.append(time.perf_counter() - begun)
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
            time.sleep(STEP_S)
            profiler.step()
            periods.append(time.perf_counter() - begun)
    json.dump(
        {
            "planted_wait": 1e3 * BATCH * SAMPLE_S,
            "planted_step": 1e3 * STEP_S,
            "waits": [1e3 * wait for wait in waits],
            "periods": [1e3 * period for period in periods],
            "shapes": torch.profiler.kineto_available(),
            "batch": BATCH,
        },
        open(args.trace + ".truth", "w"),
    )


if __name__ == "__main__":
    main()
