"""Hugging Face models and TrainingArguments, trained on several ranks."""

import inspect
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.trainer_utils import TrainOutput

from trireme import checkpoint, loops, ranks
from trireme.distributed import DistributedModel
from trireme.optimizer import DistributedOptimizer
from trireme.steps import step

_IGNORED = -100  # label of a token that is no part of the loss

# Options of TrainingArguments that ask for what is not here, and why.
_REFUSED = {
    "fp16": "losses are not scaled here; take bf16",
    "deepspeed": "stages and replicas are Trireme's own (trireme.init)",
    "fsdp": "stages and replicas are Trireme's own (trireme.init)",
    "torch_compile": "the model is recorded, and run by the engine",
    "group_by_length": "samples of a step have one shape; pad them in the collator",
}


def _distributed(model: torch.nn.Module, args: transformers.TrainingArguments) -> DistributedModel:
    names = ("activation_checkpointing", "gradient_checkpointing")  # the second: before 6
    recompute = any(getattr(args, name, False) for name in names)
    return DistributedModel(
        model, recompute="regions" if recompute else "auto", precision="bf16" if args.bf16 else ""
    )


class Trainer:
    """`transformers.Trainer` for a model that is split over ranks: the same model, arguments, data sets and collator.

        trireme.init({"pipeline_parallel_degree": 2, "microbatches": 4}, ranks=2)
        trainer = trireme.hugging_face.Trainer(model, TrainingArguments(...), train_dataset)
        trainer.train()

    A replica's step is `per_device_train_batch_size` x `gradient_accumulation_steps` samples, in as many microbatches
    as `trireme.init` says. Used of the arguments: batch sizes, learning rate, schedule, warm-up, weight decay, Adam's
    betas and epsilon, max_grad_norm, bf16, gradient_checkpointing (of whole stages), max_steps or num_train_epochs,
    seed, logging_steps, save_steps, output_dir; those that ask for what is not here are refused.

    data_collator   makes batches of one shape each time (padding="max_length"); None: stacks samples.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        args: transformers.TrainingArguments,
        train_dataset: Sequence[Any],
        eval_dataset: Sequence[Any] | None = None,
        data_collator: loops.Collate | None = None,
    ) -> None:
        for name, why in _REFUSED.items():
            if getattr(args, name, None):
                raise ValueError(f"{name}={getattr(args, name)!r} is not available: {why}")
        ranks.init()
        self.args = args
        self.model = _distributed(model, args)
        self._train, self._eval = train_dataset, eval_dataset
        self._collate = data_collator
        self._size = args.per_device_train_batch_size * args.gradient_accumulation_steps
        self._per_epoch = loops.batches_in_epoch(len(train_dataset), self._size)
        if self._per_epoch == 0:
            raise ValueError(
                f"{len(train_dataset)} samples are less than one batch of {self._size} on {ranks.rdp_size()} replicas"
            )
        self.max_steps = (
            args.max_steps
            if args.max_steps > 0
            else math.ceil(args.num_train_epochs * self._per_epoch)
        )
        self.optimizer = DistributedOptimizer(self._make_optimizer())
        self.lr_scheduler = transformers.get_scheduler(
            args.lr_scheduler_type,
            self.optimizer,
            num_warmup_steps=args.get_warmup_steps(self.max_steps),
            num_training_steps=self.max_steps,
        )
        forward = inspect.signature(type(model).forward).parameters.values()
        self._takes_number_of_items = any(p.kind is p.VAR_KEYWORD for p in forward)
        self.log_history: list[dict[str, float]] = []
        self._steps_done = 0

        @step
        def train_step(batch: dict[str, torch.Tensor]) -> None:
            if (
                "labels" in batch and self._takes_number_of_items
            ):  # as their Trainer: a mean over tokens
                labels = batch["labels"] != _IGNORED
                total = self.model(**batch, num_items_in_batch=1).loss
                self.model.backward(total, weight=labels.sum())
            else:
                self.model.backward(self.model(**batch).loss)

        @step
        def eval_step(batch: dict[str, torch.Tensor]) -> torch.Tensor:
            return self.model(**batch).loss

        self._train_step, self._eval_step = train_step, eval_step

    def train(self, resume_from_checkpoint: bool | str | None = None) -> TrainOutput:
        """Up to max_steps. Every rank calls it.

        resume_from_checkpoint   True: the newest in output_dir; or a checkpoint's tag (`checkpoint-500`).
        """
        if resume_from_checkpoint:
            tag = resume_from_checkpoint if isinstance(resume_from_checkpoint, str) else None
            content = checkpoint.resume_from_checkpoint(
                self.args.output_dir, tag, model=self.model, optimizer=self.optimizer
            )
            self._steps_done = content["step"]
            self.lr_scheduler.load_state_dict(content["lr_scheduler"])
        total, begin = 0.0, self._steps_done
        while self._steps_done < self.max_steps:
            epoch, skipped = divmod(self._steps_done, self._per_epoch)
            for i, batch in enumerate(self._batches(self._train, epoch)):
                if i < skipped:
                    continue
                total += self._step(dict(batch))
                if self._steps_done == self.max_steps:
                    break
        done = max(self._steps_done - begin, 1)
        return TrainOutput(self._steps_done, total / done, {"train_loss": total / done})

    def evaluate(self) -> dict[str, float]:
        """`eval_loss`: the mean over the batches of eval_dataset."""
        if self._eval is None:
            raise ValueError("evaluate needs eval_dataset")
        self.model.eval()
        size = self.args.per_device_eval_batch_size * self.args.gradient_accumulation_steps
        found = []
        for batch in loops.batches(self._eval, size, seed=None, collate=self._collate):
            found.append(self._mean(self._eval_step(dict(batch)).reduce_mean()))
        self.model.train()
        metrics = {"eval_loss": sum(found) / len(found)}
        self._log(metrics)
        return metrics

    def save_model(self, output_dir: str | None = None) -> None:
        """The whole model as `from_pretrained` reads it. Every rank calls it; rank 0 writes."""
        state = self.model.state_dict(gather_to_rank0=True)
        if ranks.rank() == 0:
            self.model.module.save_pretrained(output_dir or self.args.output_dir, state_dict=state)
        ranks.barrier()

    def _step(self, batch: dict[str, torch.Tensor]) -> float:
        self.optimizer.zero_grad()
        self._train_step(batch)
        loss = self.model.loss
        metrics = {"loss": loss, "learning_rate": self.lr_scheduler.get_last_lr()[0]}
        if self.args.max_grad_norm > 0:
            metrics["grad_norm"] = self.model.clip_grad_norm_(self.args.max_grad_norm)
        self.optimizer.step()
        self.lr_scheduler.step()
        self._steps_done += 1
        if self._steps_done % max(int(self.args.logging_steps), 1) == 0:
            self._log(metrics)
        if (
            str(self.args.save_strategy.value) == "steps"
            and self._steps_done % int(self.args.save_steps) == 0
        ):
            self._save()
        return loss

    def _save(self) -> None:
        content = {"step": self._steps_done, "lr_scheduler": self.lr_scheduler.state_dict()}
        checkpoint.save_checkpoint(
            self.args.output_dir,
            f"checkpoint-{self._steps_done}",
            model=self.model,
            optimizer=self.optimizer,
            user_content=content,
            num_kept_partial_checkpoints=self.args.save_total_limit,
        )

    def _batches(self, data: Sequence[Any], epoch: int) -> Any:
        return loops.batches(
            data, self._size, seed=self.args.seed, epoch=epoch, collate=self._collate
        )

    def _mean(self, value: torch.Tensor) -> float:
        """Over the replicas."""
        mean = value.double()
        self.model.world.all_reduce(mean)
        return mean.item() / ranks.size()

    def _make_optimizer(self) -> torch.optim.Optimizer:
        args, named = self.args, list(self.model.module.named_parameters())
        decays = [p for n, p in named if p.dim() > 1]
        others = [p for n, p in named if p.dim() <= 1]
        if not str(getattr(args.optim, "value", args.optim)).startswith("adamw_torch"):
            raise ValueError(
                f"optim={args.optim!r}: the optimizer is torch's AdamW; for another one write a loop with trireme.step"
            )
        return torch.optim.AdamW(
            [
                {"params": decays, "weight_decay": args.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=args.learning_rate,
            betas=(args.adam_beta1, args.adam_beta2),
            eps=args.adam_epsilon,
        )

    def _log(self, metrics: dict[str, float]) -> None:
        line = {"step": self._steps_done, **metrics}
        self.log_history.append(line)
        if ranks.rank() == 0:
            folder = Path(self.args.output_dir)
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "log.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")
