#!/usr/bin/env python3
#: cause = step/cpu or step/compute
#: why = the step is a network that trains on the CPU; one worker gives many times as many pictures
#: needs = torch torchvision
#: python = venv
#: data = thumbs
#: options = --workers 1 --width 48
#: relieved = --width 4
#: fix = --workers 2
#: fix_twin = decode.workers=2 prefetch.depth=4
#: owner = batch.size=32 augment.size=48
"""A small convolutional network on the CPU, current PyTorch."""
import torch
from torch import nn
from torch.utils import data
from torchvision import transforms

from common import Job, Pictures

job = Job(workers=1, batch=32, width=48)
torch.set_num_threads(1)
model = nn.Sequential(nn.Conv2d(3, job.width, 3, padding=1), nn.ReLU(), nn.Conv2d(job.width, job.width, 3, padding=1), nn.ReLU(),
                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(job.width, 10))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
transform = transforms.Compose([transforms.Resize((48, 48)), transforms.ToTensor()])
loader = data.DataLoader(Pictures(job.files(".jpg"), transform), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True)
for _ in job.epochs():
    for pictures, labels in job.batches(loader):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pictures), labels).backward()
        optimizer.step()
