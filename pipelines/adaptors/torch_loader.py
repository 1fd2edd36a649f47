"""A PyTorch DataLoader for `mlbench efficiency`: replace make_loader() by your own.

    mlbench efficiency CONFIG --data FOLDER -- python3 torch_loader.py
"""
import os

from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def make_loader(folder, workers, batch):
    """A folder of folders, one for each class, as torchvision has it."""
    transform = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
    return DataLoader(datasets.ImageFolder(folder, transform), batch_size=batch, shuffle=True, num_workers=workers,
                      drop_last=True, persistent_workers=workers > 0)


loader = make_loader(os.environ["MLBENCH_FOLDER"], int(os.environ["MLBENCH_WORKERS"]), int(os.environ["MLBENCH_BATCH"]))
while True:  # epochs; mlbench ends it
    for batch in loader:
        print("batch", len(batch[0]), flush=True)
