"""Trainings by Accelerate and Lightning on a backend: losses of rank 0.

torchrun --nproc-per-node 2 frameworks.py accelerate trireme LOSSES.json
"""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


def make_model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))


def make_loader() -> DataLoader[tuple[Tensor, ...]]:
    data = torch.randn(64, 6, generator=torch.Generator().manual_seed(1))
    return DataLoader(TensorDataset(data, data.sum(1, keepdim=True)), batch_size=4)


def by_accelerate(backend: str) -> list[float]:
    from accelerate import Accelerator

    dist.init_process_group(backend)  # on CPUs it would make one of Gloo or MPI
    accelerator = Accelerator(cpu=True)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    model, optimizer, loader = accelerator.prepare(model, optimizer, make_loader())
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        losses.append(accelerator.gather(loss.detach()).mean().item())
    check_backend(backend)
    accelerator.end_training()
    return losses


def by_lightning(backend: str) -> list[float]:
    import lightning
    from lightning.pytorch.strategies import DDPStrategy

    losses: list[float] = []

    class Regression(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = make_model()

        def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
            loss = (self.model(batch[0]) - batch[1]).pow(2).mean()
            self.log("loss", loss, sync_dist=True)
            losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), 0.05)

        def on_train_end(self) -> None:
            check_backend(backend)

    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=int(os.environ["LOCAL_WORLD_SIZE"]),
        strategy=DDPStrategy(process_group_backend=backend),
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Regression(), make_loader())
    return losses


def check_backend(backend: str) -> None:
    used = dist.get_backend()
    if used != backend:
        raise AssertionError(f"the process group is of {used}, expected {backend}")


def main() -> None:
    import trireme.torch  # noqa: F401  registers the backend

    name, backend, path = sys.argv[1:]
    torch.set_num_threads(1)
    losses = {"accelerate": by_accelerate, "lightning": by_lightning}[name](backend)
    if os.environ["RANK"] == "0":
        Path(path).write_text(json.dumps(losses))


if __name__ == "__main__":
    main()
