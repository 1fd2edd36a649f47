"""A stand-in for the package webdataset, which Debian has not: as much of its documented interface as the adaptor uses
(pipelines/adaptors/webdataset_loader.py), and no more.  Members of a shard whose names are the same up to the first point are a
sample, shards are dealt out to workers, each iteration is an epoch, and a worker's last batch may be smaller."""
import io
import random
import tarfile

import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class WebDataset(IterableDataset):
    def __init__(self, urls, shardshuffle=0):
        self.urls, self.shardshuffle, self.stages = list(urls), shardshuffle, []

    def __iter__(self):
        worker = get_worker_info()
        urls = self.urls[worker.id :: worker.num_workers] if worker else list(self.urls)
        if not urls:
            raise ValueError("no samples: fewer shards than workers")
        if self.shardshuffle:
            random.shuffle(urls)
        samples = (sample for url in urls for sample in samples_of(url))
        for stage in self.stages:
            samples = stage(samples)
        return samples

    def stage(self, made):
        self.stages.append(made)
        return self

    def shuffle(self, size):
        def shuffled(samples):
            held = []
            for sample in samples:
                held.append(sample)
                if len(held) >= size:
                    yield held.pop(random.randrange(len(held)))
            random.shuffle(held)
            yield from held

        return self.stage(shuffled)

    def decode(self, how):
        assert how == "pil"

        def decoded(sample):
            kinds = {"jpg": picture, "png": picture, "cls": int}
            return {name: kinds.get(name, bytes)(data) for name, data in sample.items()}

        return self.stage(lambda samples: map(decoded, samples))

    def to_tuple(self, *names):
        def chosen(sample):
            return tuple(next(sample[name] for name in of.split(";") if name in sample) for of in names)

        return self.stage(lambda samples: map(chosen, samples))

    def map_tuple(self, *functions):
        return self.stage(lambda samples: (tuple(f(value) for f, value in zip(functions, sample)) for sample in samples))

    def batched(self, size):
        def batches(samples):
            held = []
            for sample in samples:
                held.append(sample)
                if len(held) == size:
                    yield collate(held)
                    held = []
            if held:
                yield collate(held)

        return self.stage(batches)


class WebLoader(DataLoader):
    """Batches come from the data set: batch_size is None."""


def picture(data):
    return Image.open(io.BytesIO(data)).convert("RGB")


def collate(samples):
    return [torch.stack(column) if torch.is_tensor(column[0]) else torch.tensor(column) for column in zip(*samples)]


def samples_of(url):
    with tarfile.open(url) as shard:
        key, sample = None, {}
        for member in shard:
            name, _, kind = member.name.partition(".")
            if name != key and sample:
                yield sample
                sample = {}
            key = name
            sample[kind] = shard.extractfile(member).read()
        if sample:
            yield sample
