#!/usr/bin/env python3
#: cause = step/write
#: why = ModelCheckpoint saves a model of 120 MB with its optimizer after every fourth step
#: needs = torch lightning numpy
#: python = venv
#: data = npy
#: options = --every 4 --step-ms 30
#: relieved = --every 100000
#: fix = --every 16
#: fix_twin = checkpoint.every=16
#: owner = batch.size=16
"""Lightning's Trainer with a callback that saves too often."""
import time

import lightning
import numpy
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils import data

from common import Job, Timed

job = Job(workers=1, batch=16, every=4, step_ms=30.0)


class Arrays(data.Dataset):
    files = job.files(".npy")

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return torch.from_numpy(numpy.load(self.files[index])[:, ::8, ::8].copy())


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.words, self.layer = torch.nn.Embedding(60000, 512), torch.nn.Linear(192, 10)

    def training_step(self, batch, _):
        time.sleep(job.step_ms / 1000)
        return self.layer(batch.flatten(1)).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.layer.parameters(), 0.01)


class Logged(lightning.Callback):
    def on_train_batch_end(self, trainer, *_):
        job.done(job.batch, loader.waited)
        trainer.should_stop = job.ended


loader = Timed(data.DataLoader(Arrays(), job.batch, shuffle=True, drop_last=True, num_workers=job.workers, persistent_workers=True))
saves = ModelCheckpoint(job.work, every_n_train_steps=job.every)
trainer = lightning.Trainer(accelerator="cpu", max_epochs=-1, logger=False, enable_progress_bar=False, enable_model_summary=False, callbacks=[saves, Logged()])
trainer.fit(Model(), loader)
