#!/usr/bin/env python3
#: cause = trainer/cpu or process/cpu
#: why = the DataLoader has no workers: the trainer's thread decodes and augments every batch before each short step
#: needs = torch torchvision lightning
#: python = venv
#: data = photos
#: options = --workers 0 --crops 4
#: relieved = --crops 1
#: fix = --workers 2
#: fix_twin = decode.workers=2 prefetch.depth=4
#: owner = batch.size=16 augment.size=64
"""Lightning's Trainer with the defaults of a beginner."""
import lightning
import torch
from torch.utils import data
from torchvision import transforms

from common import Job, Pictures, Timed

job = Job(workers=0, batch=16, crops=4)
torch.set_num_threads(1)
transform = transforms.Compose([transforms.RandomResizedCrop(64), transforms.ColorJitter(0.2, 0.2, 0.2), transforms.ToTensor()])


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 5, 4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10))

    def training_step(self, batch, _):
        pictures, labels = batch
        return torch.nn.functional.cross_entropy(self.layers(pictures.flatten(0, 1)), labels.repeat_interleave(job.crops))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


class Logged(lightning.Callback):
    def on_train_batch_end(self, trainer, *_):
        job.done(job.batch, loader.waited)
        trainer.should_stop = job.ended


def crops(picture):
    return torch.stack([transform(picture) for _ in range(job.crops)])


loader = Timed(data.DataLoader(Pictures(job.files(".jpg"), crops), job.batch, shuffle=True, drop_last=True, num_workers=job.workers,
                         persistent_workers=job.workers > 0))
trainer = lightning.Trainer(accelerator="cpu", max_epochs=-1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                            enable_model_summary=False, callbacks=[Logged()])
trainer.fit(Model(), loader)
