"""Programs as users of Lightning and of accelerate write them: they learn digits, and only the name of the backend varies.

    torchrun --nproc-per-node 2 frameworks.py lightning|accelerate BACKEND FILE     # FILE: for the weights of rank 0
"""
import ctypes
import datetime
import signal
import sys

import torch
import torch.distributed as dist
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


def digits(count=512):
    """28 x 28 pixels: each class is a bright block at a place of its own, and noise."""
    generator = torch.Generator().manual_seed(7)
    labels = torch.randint(10, (count,), generator=generator)
    images = torch.rand((count, 1, 28, 28), generator=generator)
    for image, label in zip(images, labels.tolist()):
        row, column = divmod(label, 4)
        image[0, row * 9:row * 9 + 7, column * 7:column * 7 + 7] += 1
    return TensorDataset(images, labels)


def net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3, 2), torch.nn.ReLU(), torch.nn.BatchNorm2d(8), torch.nn.Flatten(),
                               torch.nn.Linear(8 * 13 * 13, 64), torch.nn.ReLU(), torch.nn.Dropout(0.1),
                               torch.nn.Linear(64, 10))


def with_lightning(backend):
    import lightning
    from lightning.pytorch.strategies import DDPStrategy

    class Digits(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net()

        def training_step(self, batch, _):
            images, labels = batch
            loss = functional.cross_entropy(self.net(images), labels)
            self.log("loss", loss, sync_dist=True)
            return loss

        def validation_step(self, batch, _):
            images, labels = batch
            right = (self.net(images).argmax(1) == labels).float().mean()
            self.log("accuracy", right, sync_dist=True)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-3)

    lightning.seed_everything(3)
    trainer = lightning.Trainer(accelerator="cpu", devices=2, max_epochs=2, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
                                strategy=DDPStrategy(process_group_backend=backend,
                                                     timeout=datetime.timedelta(seconds=60)))
    module = Digits()
    trainer.fit(module, DataLoader(digits(), 32, shuffle=True), DataLoader(digits(128), 32))
    return module.net, {name: float(value) for name, value in trainer.callback_metrics.items()}


def with_accelerate(backend):
    """On CPUs, accelerate itself names gloo: the program makes the group, and accelerate uses that."""
    from accelerate import Accelerator
    from accelerate.utils import set_seed

    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=60))
    accelerator = Accelerator(cpu=True)
    set_seed(3, device_specific=True)
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.5)
    model, optimizer, loader, scheduler = accelerator.prepare(
        model, optimizer, DataLoader(digits(), 32, shuffle=True), scheduler)
    for _ in range(2):
        model.train()
        for images, labels in loader:
            with accelerator.accumulate(model):
                loss = functional.cross_entropy(model(images), labels)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
    model.eval()
    right = []
    for images, labels in accelerator.prepare(DataLoader(digits(100), 32)):
        guesses, labels = accelerator.gather_for_metrics((model(images).argmax(1), labels))
        right.append(guesses == labels)
    accelerator.wait_for_everyone()
    return accelerator.unwrap_model(model), {"loss": float(accelerator.reduce(loss.detach(), "mean")),
                                             "accuracy": float(torch.cat(right).float().mean())}


def main():
    framework, backend, file = sys.argv[1:]
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: torchrun may be killed
    torch.set_num_threads(1)
    model, figures = {"lightning": with_lightning, "accelerate": with_accelerate}[framework](backend)
    assert (dist.get_backend(), dist.get_world_size()) == (backend, 2), (dist.get_backend(), dist.get_world_size())
    if dist.get_rank() == 0:
        torch.save({"weights": model.state_dict(), "figures": figures}, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
