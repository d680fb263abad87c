"""A module split over ranks, for training loops of one's own."""

import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch

from trireme import _core, ranks, session
from trireme._core import Loss, Plan
from trireme.manual_partition import cuts_between, partitions_of
from trireme.modules import core_model, first_names

if TYPE_CHECKING:
    from trireme.optimizer import DistributedOptimizer

Forward = Callable[[dict[str, torch.Tensor]], list[Loss]]


class DistributedModel:
    """A module whose stages are on several ranks, called inside `trireme.step` functions.

    Every rank makes one, of the same module; rank 0's weights are everybody's. It is recorded, measured, cut and
    given to the ranks in the first call of the step; until then, and with one stage after it too, all parameters are
    everywhere. Options of the constructor that ask for what is not so are refused.

    trace_execution_times     False: stages of about as many operators each; True, as it is: measured.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        trace_execution_times: bool = True,
        backward_passes_per_step: int = 1,
        average_grads_across_microbatches: bool = True,
        precision: str = "",
        **options: Any,
    ) -> None:
        if backward_passes_per_step != 1 or not average_grads_across_microbatches:
            raise ValueError(
                "gradients are averaged over all microbatches of a step, and every step ends with an update; for more "
                "samples in an update, give the step more microbatches"
            )
        self.module = module
        self.world = ranks.init()
        self._config = ranks.config()
        self._precision = precision or self._config.precision
        if self._precision == "f16":
            raise ValueError("f16 wants losses that are scaled, as trireme.Session does; take bf16")
        self._measures = trace_execution_times
        self._options = options
        self._shapes = {name: tensor.shape for name, tensor in _tensors_of(module)}
        self._session: _core.Session | None = None
        self._feed: _core.Feed | None = None
        self._owner: object | None = None
        self._recorded: Recorded | None = None
        self._hooks: list[Callable[[DistributedModel, DistributedOptimizer | None], Any]] = []
        self.optimizer: DistributedOptimizer | None = None
        session.share_weights(self.world, module)
        global _model
        _model = weakref.ref(self)
        ranks.at_end(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._recorded is None and self.partitioned and self._config.stages > 1:
            raise RuntimeError(
                "the model is split over ranks; call it inside a function of @trireme.step"
            )
        return self.module(*args, **kwargs)

    def backward(self, loss: torch.Tensor, *, weight: torch.Tensor | None = None) -> None:
        """Says of which loss the gradients are; inside a step function, once.

        loss     0-dim: a mean over the samples, or with `weight` a sum.
        weight   0-dim: what the sum is to be divided by, once both are totals of the step (the number of tokens that
                 are not padding).
        """
        if self._recorded is None:
            raise RuntimeError("backward belongs inside a function of @trireme.step")
        if loss.dim() != 0:
            raise TypeError(
                f"backward takes one number, and here is a tensor of shape {list(loss.shape)}; give its mean"
            )
        self._recorded.take(loss, weight)

    @property
    def partitioned(self) -> bool:
        return self._session is not None

    @property
    def loss(self) -> float:
        """Of the last step, over the samples of all replicas; the same on all ranks."""
        return self._loss

    @property
    def plan(self) -> Plan:
        """How it was split; after the first step."""
        return self._live().plan

    @property
    def graph(self) -> _core.Graph:
        return self._live().graph

    def clip_grad_norm_(self, max_norm: float) -> float:
        """Between step and update: scales gradients so that the norm of all, over all ranks, is at most this. Returns
        the norm before."""
        scale = max_norm / (self._norm + 1e-6)
        if scale < 1:
            for gradient in self._live().gradients().values():
                gradient.mul_(scale)
        return self._norm

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """All of the module's, for an optimizer; those that are elsewhere never get a gradient."""
        return self.module.parameters()

    def named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        return self.module.named_parameters()

    def buffers(self) -> Iterator[torch.Tensor]:
        return self.module.buffers()

    def named_buffers(self) -> Iterator[tuple[str, torch.Tensor]]:
        return self.module.named_buffers()

    def local_named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Those whose values are on this rank."""
        return ((n, p) for n, p in self.module.named_parameters() if p.shape == self._shapes[n])

    def local_parameters(self) -> Iterator[torch.nn.Parameter]:
        return (parameter for _, parameter in self.local_named_parameters())

    def local_state_dict(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers that are on this rank, as they are: later steps change them."""
        return {n: t.detach() for n, t in _tensors_of(self.module) if t.shape == self._shapes[n]}

    def state_dict(self, *, gather_to_rank0: bool = False) -> dict[str, torch.Tensor]:
        """The whole model's, copies, on every rank, or rank 0 alone. Every rank calls it."""
        if not self.partitioned:
            return {name: tensor.clone() for name, tensor in self.module.state_dict().items()}
        found = self._live().weights()
        if not gather_to_rank0:
            for name, tensor in _tensors_of(self.module):
                empty = torch.empty(self._shapes[name], dtype=tensor.dtype)
                found[name] = found.get(name, empty).contiguous()
                self.world.broadcast(found[name])
        elif self.world.rank != 0:
            return {}
        return {name: found[first] for name, first in first_names(self.module).items()}

    def load_state_dict(self, state: Mapping[str, torch.Tensor], *, strict: bool = True) -> None:
        """Takes what is on this rank out of a whole model's state; before the first step or between steps."""
        missing = [name for name in first_names(self.module).values() if name not in state]
        if strict and missing:
            raise KeyError(f"the state lacks {', '.join(missing)}")
        with torch.no_grad():
            for name, tensor in _tensors_of(self.module):
                if name in state and tensor.shape == self._shapes[name]:
                    tensor.copy_(state[name])

    def train(self, mode: bool = True) -> "DistributedModel":
        self.module.train(mode)
        return self

    def eval(self) -> "DistributedModel":
        return self.train(False)

    def register_post_partition_hook(
        self, hook: Callable[["DistributedModel", "DistributedOptimizer | None"], Any]
    ) -> None:
        """Called when the parameters have gone to their ranks, before the first step runs."""
        self._hooks.append(hook)

    def close(self) -> None:
        """Ends the session; the local weights stay."""
        if self._feed is not None:
            self._feed.close()
        self._session = None

    def _live(self) -> _core.Session:
        if self._session is None:
            raise RuntimeError(
                "the model is split in the first call of the step; it was not called yet"
            )
        return self._session

    @contextlib.contextmanager
    def _recording(self, trains: bool) -> Iterator["Recorded"]:
        self._recorded = Recorded(trains)
        try:
            yield self._recorded
        finally:
            self._recorded = None

    def _split(
        self,
        owner: object,
        forward: Forward,
        fields: list[tuple[str, torch.Tensor]],
        num_samples: int,
    ) -> None:
        """Records `forward`, plans, and gives the parameters to the ranks."""
        if self._owner is not None:
            raise RuntimeError(
                "a model has one training step, which was recorded; make another DistributedModel for another one"
            )
        self.world = ranks.init()  # alone, a new one: what failed before leaves this as it is
        config, replicas = self._config, ranks.rdp_size()
        if num_samples % config.microbatches != 0:
            raise ValueError(
                f"{num_samples} samples are not {config.microbatches} microbatches of one size"
            )
        self._size = num_samples // config.microbatches
        feed = _core.Feed(fields, replicas, ranks.rdp_rank())
        model = core_model(self.module, forward, {}, self._precision)
        model.recorded_by_all = True  # what it returns has a form that every rank needs
        options = self._session_options(num_samples * replicas)

        def make() -> _core.Workload:
            return _core.Workload(model, feed, None)

        if not config.auto_partition and not config.load_partition:
            options.planning = self._with_cuts(options.planning, make)
        self._session = _core.Session(self.world, make, options)
        self._owner, self._feed = owner, feed
        if config.partition_file and not config.load_partition and self.world.rank == 0:
            self._session.plan.save(config.partition_file)
        for hook in self._hooks:
            hook(self, self.optimizer)

    def _record_evaluation(
        self, forward: Forward, fields: list[tuple[str, torch.Tensor]]
    ) -> "Evaluation":
        """Another forward over the parameters, in eval mode."""
        live = self._live()
        feed = _core.Feed(fields, ranks.rdp_size(), ranks.rdp_rank(), any_size=True)
        model = core_model(self.module, forward, {}, self._precision)
        model.recorded_by_all = True  # what it returns has a form that every rank needs
        recorded = live.record_evaluation(lambda: _core.Workload(model, feed, feed))
        return Evaluation(live, feed, recorded)

    def _with_cuts(
        self, planning: _core.PlanOptions, make: Callable[[], _core.Workload]
    ) -> _core.PlanOptions:
        graph = _core.record_graph(make, self._size)
        partitions = partitions_of(self.module, self._config.default_partition)
        planning.cuts = [str(cut) for cut in cuts_between(graph, partitions, self._config.stages)]
        return planning

    def _session_options(self, global_batch: int) -> _core.SessionOptions:
        config, replicas = self._config, ranks.rdp_size()
        batch = _core.BatchLayout(global_batch, self._size, replicas)
        plan: str | Plan = "auto" if self._measures else "even"
        if config.load_partition:
            plan = Plan.load(config.partition_file)
        options = session.to_options(
            plan,
            batch,
            None,
            {
                "optimizer": "own",
                "shuffled": False,
                "stages": config.stages,
                "replicas": replicas,
                "schedule": config.schedule,
                "active_microbatches": config.active_microbatches,
                "placement": _core.Placement.CLUSTER
                if config.placement == "cluster"
                else _core.Placement.SPREAD,
                "tolerant": replicas & (replicas - 1) != 0,
                "offload": config.offload,
                **self._options,
            },
        )
        if config.objective == "memory":
            planning = options.planning
            planning.objective = _core.Objective.MEMORY
            options.planning = planning
        return options

    def _backward_of(
        self, owner: object, fields: list[tuple[str, torch.Tensor]], count: int
    ) -> list[list[float]]:
        """Forwards and backwards of a step, after which parameters have their gradients; the sum of each loss over
        each microbatch of this replica, of which there are `count`."""
        if owner is not self._owner:
            raise RuntimeError("a model has one training step; this is another function")
        live = self._live()
        assert self._feed is not None
        self._feed.push(live.next_step, fields)
        report = live.backward()
        self._norm, self._loss = report.gradient_norm, report.losses.total
        gradients = live.gradients()
        for name, parameter in self.module.named_parameters():
            parameter.grad = gradients.get(name)
        return report.microbatch_sums[ranks.rdp_rank() * self._config.microbatches :][:count]

    def _sizes(self, num_samples: int) -> list[int]:
        """Samples of each microbatch of so many."""
        return [min(self._size, num_samples - i) for i in range(0, num_samples, self._size)]

    def _update(self) -> None:
        self._live().update()


class Evaluation:
    """A forward in eval mode over a model that is split."""

    def __init__(
        self, live: _core.Session, feed: _core.Feed, recorded: _core.RecordedForward
    ) -> None:
        self._live, self._feed, self._recorded = live, feed, recorded

    def run(self, fields: list[tuple[str, torch.Tensor]], sizes: list[int]) -> list[list[float]]:
        """The sum of each loss over each microbatch of this replica, of so many samples."""
        if ranks.rdp_size() > 1 and sizes[-1] != sizes[0]:
            raise ValueError(
                f"{sum(sizes)} samples are not microbatches of {sizes[0]}, as replicas need; drop the last batch"
            )
        self._feed.push(0, fields)
        sums = self._live.evaluate_recorded(self._recorded).microbatch_sums
        return sums[ranks.rdp_rank() * len(sizes) :][: len(sizes)]


class Recorded:
    """What a step function's body says to its model."""

    def __init__(self, trains: bool) -> None:
        self._trains = trains
        self._loss: torch.Tensor | None = None
        self.weight: torch.Tensor | None = None

    def take(self, loss: torch.Tensor, weight: torch.Tensor | None) -> None:
        if not self._trains:
            raise RuntimeError(
                "the model is in eval mode, and the step function calls model.backward"
            )
        if self._loss is not None:
            raise RuntimeError(
                "the step function calls model.backward twice; add the losses, and call it once"
            )
        self._loss, self.weight = loss, weight

    def loss(self) -> torch.Tensor | None:
        if self._trains and self._loss is None:
            raise RuntimeError("the step function has not called model.backward(loss)")
        return self._loss


_model: "weakref.ref[DistributedModel] | None" = None


def model_in_use() -> DistributedModel:
    """The DistributedModel that was made last."""
    model = _model() if _model is not None else None
    if model is None:
        raise RuntimeError("there is no DistributedModel yet; make one first")
    return model


def _tensors_of(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()
