"""A WebDataset for `mlbench efficiency`: replace make_loader() by your own.

    mlbench efficiency CONFIG --data FOLDER -- python3 webdataset_loader.py
"""
import glob
import os

import webdataset
from torchvision import transforms


def make_loader(folder, workers, batch):
    """Shards named *.tar of pictures and class numbers, as many workers as can have a shard each."""
    shards = sorted(glob.glob(os.path.join(folder, "*.tar")))
    if not shards:
        raise SystemExit("no *.tar in '%s'" % folder)
    transform = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    data = (webdataset.WebDataset(shards, shardshuffle=100).shuffle(1000).decode("pil")
            .to_tuple("jpg;png", "cls").map_tuple(transform, int).batched(batch))
    return webdataset.WebLoader(data, batch_size=None, num_workers=min(workers, len(shards)))


loader = make_loader(os.environ["MLBENCH_FOLDER"], int(os.environ["MLBENCH_WORKERS"]), int(os.environ["MLBENCH_BATCH"]))
while True:  # epochs; mlbench ends it
    for batch in loader:
        print("batch", len(batch[0]), flush=True)
