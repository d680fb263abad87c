"""Training of a module by the ranks of a plan."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from trireme import _core
from trireme import ranks as _ranks
from trireme._core import Graph, Plan, SessionEnd, StepLosses, StepReport
from trireme.data import Samples, has_own_order, to_source
from trireme.metrics.metric import CollectedParts, MetricLike, to_metric
from trireme.modules import LossFunction, first_names, to_model


class Session:
    """A module being trained by all ranks, each its stage of the pipeline and its part of the batch.

        session = trireme.Session(model, loss, data, ranks=4, batch_size=64, microbatch_size=8, steps=1000)
        for report in session:
            if session.rank == 0: print(report.step, report.loss)

    The module is recorded once and not called again; every rank sees the same losses. Weights have the bits of
    one process, for any plan. Every rank makes one and calls the same methods in the same order. What fails on
    one rank is the same `trireme.Error` on all.

    model            unmodified; rank 0's weights are everybody's. Afterwards its own parameters are the trained ones on
                     the ranks that hold them (`weights` gives all). Or a function that makes it, called some times on
                     every rank: weights that torch draws then depend on `seed` and their names alone. With
                     deferred_init=True they are drawn only where they are held: for a model that is larger than a
                     rank's memory.
    loss             loss(model, batch) -> a 0-dim tensor, mean_loss(..), sum_loss(..), a list or dict of these. None:
                     what the model returns, or its `loss`.
    data             tensors by name, or a map-style data set of samples that are alike; what open_fixed_records,
                     vision.open_images, speech.open_utterances or volume.open_volumes open;
                     any of these within Padded, Mixed, Packed, Repeated or SkipDamaged.
    evaluation       the same, held out; `evaluate` and the run's options say when it is used.
    metrics          of all of the evaluation's samples, out of what `loss` returns as trireme.output(..): one of
                     trireme.metrics, as accuracy() or roc_auc(); a function of one's own; a list of these. On rank 0.
                     metrics(outputs) -> numbers by name: `lambda o: {"AUC": roc_auc_score(o["label"], o["score"])}`;
                     outputs by name, each [samples, ...] in the order of the data, a list of parts where their
                     lengths differ.
    plan             "auto": measured, then the best plan for speed ("memory": for least memory); "even": stages of
                     about as many operators each, not measured; a Plan, or its file's path.
    ranks            started on this machine if nobody else has (`trireme.init`).
    batch_size       samples of a step, over all ranks; microbatch_size divides it.
    lanes            in how many parts a step's gradient is summed, the same for any number of ranks; a power of 2
                     that divides the number of microbatches; at most so many replicas share a batch.
    steps            of the whole run; None: as many as are asked for.
    scalars          numbers by name that change with the step; the model reads them as 0-dim tensors of the batch.
    precision        in what matrix products and convolutions are computed, as torch.autocast has it: "f32", "bf16" or
                     "f16", with a loss scale of 65536 unless `loss_scale` says otherwise. Weights stay f32.
    options          fields of OptimizerOptions, TrainingOptions, PlanOptions, RunOptions and SessionOptions by name:
                     learning_rate=1e-3, optimizer="adamw", clip_norm=1.0, seed=0, stages=2, folder="runs/a",
                     threads=2 (cores that each rank computes with; other last bits than with 1),
                     recompute="all" ("regions": a part of a stage at a time; "auto": where the memory is too
                     small; "none"), schedule="v_half",
                     offload="none" ("auto", "all": activations in a file of offload_folder),
                     capture=False (operators through torch's dispatcher and autograd at every step),
                     gradient_dtype="bf16" (replicas send half the bytes; "f32"),
                     reader_threads=4 (of each rank, that read samples ahead; 0: as many as its first steps need),
                     reader_ranks=2 (the last ranks hold no part of the model: they read samples for the others),
                     shard_state=True, shard_parameters=True (replicas keep parts of the optimizer's state, of all),
                     turns=[trireme.Turn(["discriminator.*"], ["d"], 2), ..] (which loss moves what, how many steps),
                     checkpoint_writes="wait" ("beside", "auto"), checkpoint_errors="continue" ("stop"),
                     checkpoint_every=500, evaluate_every=100, on_evaluation=lambda steps_done, losses: ..., ...

    Cost             some forwards to record; with plan="auto" seconds to measure.
    """

    def __init__(
        self,
        model: torch.nn.Module | Callable[[], torch.nn.Module],
        loss: LossFunction | None = None,
        data: Samples | None = None,
        *,
        evaluation: Samples | None = None,
        metrics: MetricLike | None = None,
        plan: str | Path | Plan = "auto",
        ranks: int | None = None,
        batch_size: int = 32,
        microbatch_size: int = 8,
        lanes: int | None = None,
        steps: int | None = None,
        precision: str = "f32",
        scalars: Mapping[str, Callable[[int], float]] | None = None,
        **options: Any,
    ) -> None:
        self._world = _ranks.init(ranks=ranks)
        batch = _layout(batch_size, microbatch_size, lanes)
        if data is None:
            raise TypeError("a Session needs data: tensors by name, or a map-style data set")
        source, form = to_source(data)
        if has_own_order(data):
            options.setdefault("shuffled", False)
        evaluated = to_source(evaluation)[0] if evaluation is not None else None
        collect = None if metrics is None else partial(CollectedParts, to_metric(metrics))
        if precision == "f16":
            options.setdefault("loss_scale", 65536)
        if isinstance(model, torch.nn.Module):
            if options.get("deferred_init"):
                raise TypeError(
                    "deferred_init is for a function that makes the model: this one has its memory already"
                )
            share_weights(self._world, model)

        def workload_of(module: torch.nn.Module) -> _core.Workload:
            self._module = module
            model = to_model(module, loss, form, scalars or {}, precision)
            return _core.Workload(model, source, evaluated, collect)

        given = workload_of(model) if isinstance(model, torch.nn.Module) else None

        def make() -> _core.Workload:
            return given if given is not None else workload_of(model())

        self._open: _core.Session | None = _core.Session(
            self._world, make, to_options(plan, batch, steps, options)
        )
        self._steps = steps
        _ranks.at_end(self)

    def run(self) -> SessionEnd:
        """All steps, in C++, with the evaluations and checkpoints that are due; then `finish`. Python runs in
        callbacks alone: on_step(report), on_evaluation(steps_done, losses), on_checkpoint(steps_done, folder)."""
        return self._session.run()

    def step(self) -> StepReport:
        """One more step."""
        return self._session.step()

    def __iter__(self) -> Iterator[StepReport]:
        """Steps up to `steps`, or until a stop is asked for, with the evaluations and checkpoints that are due;
        `finish` then writes the last checkpoint. On a rank that reads for others, none."""
        if self.is_reader:
            self.run()
            return
        while (self._steps is None or self.next_step < self._steps) and not self._session.stops:
            yield self._session.run_step()

    def evaluate(self) -> StepLosses:
        """Losses over the evaluation data, every sample once, the model in eval mode."""
        return self._session.evaluate()

    def save(self) -> None:
        """Writes a checkpoint of this step into the run's folder."""
        self._session.save()

    def resume(self, checkpoint: str | Path) -> None:
        """Resumes from a checkpoint's folder, of any plan and number of ranks, before the first step."""
        self._session.resume(str(checkpoint))

    def follow(self, run: str | Path) -> int:
        """Evaluates the checkpoints of a run that trains elsewhere with `evaluates_elsewhere=True`, as they are
        published, until it ends; returns how many. This session has no folder and has done no step."""
        return self._session.follow(str(run))

    def finish(self) -> SessionEnd:
        """Ends the training: last checkpoint, timelines, evaluation. No step may follow."""
        return self._session.finish()

    def weights(self) -> dict[str, torch.Tensor]:
        """All parameters and buffers, copies, as `model.load_state_dict` takes them, on rank 0; elsewhere none. Every
        rank calls it."""
        found = self._session.weights()
        if not found:
            return {}
        return {name: found[first] for name, first in first_names(self._module).items()}

    def save_weights(self, path: str | Path) -> None:
        """The same as a safetensors file."""
        self._session.save_weights(str(path))

    def save_timeline(self, path: str | Path) -> None:
        """The last step as a Chrome trace, for ui.perfetto.dev."""
        self._session.save_timeline(str(path))

    def request_stop(self) -> None:
        """Asks for an end after the step under way, on every rank."""
        self._session.request_stop()

    @property
    def _session(self) -> _core.Session:
        if self._open is None:
            raise RuntimeError("the session is closed; make another one")
        return self._open

    def close(self) -> None:
        """Lets go of it; the weights on this rank stay in the module. Done at the program's end, too."""
        self._open = None

    @property
    def next_step(self) -> int:
        """Steps done."""
        return self._session.next_step

    @property
    def rank(self) -> int:
        return self._world.rank

    @property
    def is_reader(self) -> bool:
        """Whether this rank reads samples for those that train (reader_ranks): it calls `run`, `follow` or `finish`,
        or iterates, all of which return once they have ended."""
        return self._session.is_reader

    @property
    def plan(self) -> Plan:
        return self._session.plan

    @property
    def graph(self) -> Graph:
        return self._session.graph


def _layout(batch_size: int, microbatch_size: int, lanes: int | None) -> _core.BatchLayout:
    if microbatch_size < 1 or batch_size % microbatch_size != 0:
        raise ValueError(
            f"microbatch_size={microbatch_size} does not divide batch_size={batch_size}"
        )
    count = batch_size // microbatch_size
    return _core.BatchLayout(batch_size, microbatch_size, lanes or min(4, count & -count))


def share_weights(world: _core.World, module: torch.nn.Module) -> None:
    """Rank 0's parameters and buffers to all."""
    with torch.no_grad():
        for _, tensor in [*module.named_parameters(), *module.named_buffers()]:
            dense = tensor.detach().contiguous()
            world.broadcast(dense)
            if dense.data_ptr() != tensor.data_ptr():
                tensor.copy_(dense)


def to_options(
    plan: str | Path | Plan,
    batch: _core.BatchLayout,
    steps: int | None,
    given: Mapping[str, Any],
) -> _core.SessionOptions:
    """SessionOptions out of all options by name; those within are found wherever they are."""
    options, training = _core.SessionOptions(), _core.TrainingOptions()
    planning, run, optimizer = _core.PlanOptions(), _core.RunOptions(), _core.OptimizerOptions()
    planning.batch = batch
    options.num_steps = steps
    options.measures = plan in ("auto", "memory") and not given.get("serial", False)
    if plan == "memory":
        planning.objective = _core.Objective.MEMORY
    elif isinstance(plan, Plan):
        options.plan = plan
    elif plan not in ("auto", "even"):
        options.plan = Plan.load(plan)
    if "optimizer" in given:
        optimizer.name = given["optimizer"]
    groups = (optimizer, training, planning, run, options)
    for name, value in given.items():
        if name != "optimizer":
            setattr(_owner(groups, name), name, _of_words(name, value))
    training.optimizer = optimizer
    options.training, options.planning, options.run = training, planning, run
    return options


# Options whose values are words, and their kinds.
_WORDS: dict[str, Any] = {
    "recompute": _core.Recompute,
    "balance": _core.Balance,
    "offload": _core.Offload,
    "gradient_dtype": _core.GradientDtype,
    "checkpoint_writes": _core.CheckpointWrites,
    "checkpoint_errors": _core.CheckpointErrors,
}


def _of_words(name: str, value: Any) -> Any:
    if name not in _WORDS:
        return value
    known = {word.lower(): kind for word, kind in _WORDS[name].__members__.items()}
    if value not in known:
        raise TypeError(f"{name} is one of {', '.join(known)}, not {value!r}")
    return known[value]


_NOT_BY_NAME = {
    "optimizer",
    "training",
    "planning",
    "run",
    "plan",
    "batch",
    "num_steps",
    "objective",
    "model",
}


def _owner(groups: tuple[Any, ...], name: str) -> Any:
    for group in groups:
        if name in _names_of(group):
            return group
    known = sorted(name for group in groups for name in _names_of(group))
    raise TypeError(f"Session has no option {name!r}; it has {', '.join(known)}")


def _names_of(group: Any) -> list[str]:
    return [n for n in dir(group) if not n.startswith("_") and n not in _NOT_BY_NAME]
