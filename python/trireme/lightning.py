"""LightningModules, trained on several ranks."""

from collections.abc import Iterator
from typing import Any

import torch
from lightning import LightningModule
from torch.utils.data import DataLoader, SequentialSampler

from trireme import loops
from trireme.distributed import DistributedModel
from trireme.optimizer import DistributedOptimizer
from trireme.steps import step


class Trainer:
    """`lightning.Trainer` for a module that is split over ranks.

        trireme.init({"pipeline_parallel_degree": 2, "microbatches": 4}, ranks=2)
        trireme.lightning.Trainer(max_epochs=2).fit(module, loader)

    Of the module it uses training_step, validation_step, configure_optimizers (one optimizer; schedules by step or by
    epoch), on_train_epoch_start and on_train_epoch_end. A step returns the loss, or a dict that has it; the steps are
    recorded, so that what they log with self.log is not kept.

    max_steps           at most so many; -1: as many as the epochs have.
    gradient_clip_val   the largest norm of all gradients; None: they are not clipped.
    """

    def __init__(
        self, max_epochs: int = 1, max_steps: int = -1, gradient_clip_val: float | None = None
    ) -> None:
        self.max_epochs, self.max_steps = max_epochs, max_steps
        self.gradient_clip_val = gradient_clip_val
        self.history: list[float] = []
        """The loss of each step, over this replica's samples."""
        self.validations: list[float] = []

    def fit(
        self,
        module: LightningModule,
        train_dataloader: DataLoader[Any],
        val_dataloader: DataLoader[Any] | None = None,
    ) -> None:
        """Trains on the samples of the loader's data set; its batch_size is that of a replica. Every rank calls it."""
        self._model = DistributedModel(module)
        optimizer, self._schedules = _optimizer_of(module)
        self._optimizer = DistributedOptimizer(optimizer)

        @step
        def train_step(batch: Any) -> torch.Tensor:
            loss = _loss_of(module.training_step(batch, 0))
            self._model.backward(loss)
            return loss

        @step
        def validation_step(batch: Any) -> torch.Tensor:
            return _loss_of(module.validation_step(batch, 0))

        for epoch in range(self.max_epochs):
            module.on_train_epoch_start()
            for batch in _batches(train_dataloader, epoch):
                if len(self.history) == self.max_steps:
                    return
                self._step(train_step, batch)
            module.on_train_epoch_end()
            self._advance("epoch")
            if val_dataloader is not None:
                self._validate(validation_step, val_dataloader)

    def _step(self, train_step: Any, batch: Any) -> None:
        self._optimizer.zero_grad()
        self.history.append(train_step(batch).reduce_mean().item())
        if self.gradient_clip_val is not None:
            self._model.clip_grad_norm_(self.gradient_clip_val)
        self._optimizer.step()
        self._advance("step")

    def _validate(self, validation_step: Any, loader: DataLoader[Any]) -> None:
        self._model.eval()
        found = [validation_step(b).reduce_mean().item() for b in _batches(loader, None)]
        self.validations.append(sum(found) / len(found))
        self._model.train()

    def _advance(self, interval: str) -> None:
        for schedule, every in self._schedules:
            if every == interval:
                schedule.step()


def _batches(loader: DataLoader[Any], epoch: int | None) -> Iterator[Any]:
    is_shuffled = epoch is not None and not isinstance(loader.sampler, SequentialSampler)
    return loops.batches(
        loader.dataset,
        loader.batch_size,
        seed=0 if is_shuffled else None,
        epoch=epoch or 0,
        collate=loader.collate_fn,
    )


def _loss_of(returned: Any) -> torch.Tensor:
    loss = returned.get("loss") if isinstance(returned, dict) else returned
    if not isinstance(loss, torch.Tensor):
        raise TypeError(
            f"a step of the module returns {type(returned).__name__}; it has to return the loss, or a dict with it"
        )
    return loss


def _optimizer_of(module: LightningModule) -> tuple[torch.optim.Optimizer, list[tuple[Any, str]]]:
    """The optimizer, and its schedules with their interval, out of the forms configure_optimizers may return."""
    found = module.configure_optimizers()
    schedules: Any = []
    if isinstance(found, dict):
        schedules = found.get("lr_scheduler", [])
        found = found["optimizer"]
    elif (
        isinstance(found, (tuple, list)) and len(found) == 2 and isinstance(found[0], (tuple, list))
    ):
        found, schedules = found
    if isinstance(found, (tuple, list)) and len(found) == 1:
        found = found[0]
    if not isinstance(found, torch.optim.Optimizer):
        raise ValueError(
            "configure_optimizers returns one optimizer here, with or without schedules"
        )
    if not isinstance(schedules, (tuple, list)):
        schedules = [schedules]
    return found, [_with_interval(schedule) for schedule in schedules]


def _with_interval(schedule: Any) -> tuple[Any, str]:
    if isinstance(schedule, dict):
        return schedule["scheduler"], schedule.get("interval", "epoch")
    return schedule, "epoch"
