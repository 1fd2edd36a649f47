"""Any Python iterable of batches for `mlbench efficiency`: replace batches() by your own.  As it stands it reads files whole,
in as many processes as there are workers, and decodes nothing.

    mlbench efficiency CONFIG --data FOLDER -- python3 python_loader.py
"""
import multiprocessing
import os


def read(path):
    with open(path, "rb") as file:
        return len(file.read())


def batches(folder, workers, size):
    files = [os.path.join(top, name) for top, _, names in os.walk(folder) for name in sorted(names)]
    with multiprocessing.Pool(max(workers, 1)) as pool:
        for begin in range(0, len(files) - size + 1, size):
            yield pool.map(read, files[begin:begin + size])


while True:  # epochs; mlbench ends it
    for batch in batches(os.environ["MLBENCH_FOLDER"], int(os.environ["MLBENCH_WORKERS"]), int(os.environ["MLBENCH_BATCH"])):
        print("batch", len(batch), flush=True)
