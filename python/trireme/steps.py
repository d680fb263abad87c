"""`@trireme.step`: the training step of a loop of one's own, run for each microbatch."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeVar, overload

import torch
from torch.utils import _pytree as pytree

from trireme._core import Loss
from trireme.distributed import DistributedModel, Evaluation, model_in_use
from trireme.step_outputs import Kept, Returned

F = TypeVar("F", bound=Callable[..., Any])


@overload
def step(function: F) -> F: ...


@overload
def step(
    *, non_split_inputs: Sequence[str] = (), input_split_axes: Mapping[str, int] | None = None
) -> Callable[[F], F]: ...


def step(
    function: Callable[..., Any] | None = None,
    *,
    non_split_inputs: Sequence[str] = (),
    input_split_axes: Mapping[str, int] | None = None,
) -> Any:
    """Splits the tensors that a function is called with into microbatches, and runs it for each, over all stages.

        @trireme.step
        def train_step(model, x, y):
            loss = functional.cross_entropy(model(x), y)
            model.backward(loss)
            return loss

        loss = train_step(model, x, y).reduce_mean()
        optimizer.step()

    The body is recorded in the first call and not run again: it depends on its arguments and on the model alone. It
    calls `model.backward` once, with a mean over the samples (in eval mode not at all), and returns tensors, or a
    tuple, list or dict of them, which come back as StepOutputs, on every rank. Every rank calls it with the samples of
    its replica: as many on each, in later calls at most as many as in the first (the last batch of an epoch may be
    smaller); afterwards parameters that this rank updates have their gradient, the mean over the samples of all
    replicas.

    non_split_inputs   names of arguments that every microbatch gets whole.
    input_split_axes   the dimension of the samples by argument, where it is not 0.
    """
    if function is None:
        return functools.partial(
            step, non_split_inputs=non_split_inputs, input_split_axes=input_split_axes
        )
    call = _StepFunction(function, frozenset(non_split_inputs), dict(input_split_axes or {}))

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    return run


class _Kind(Enum):
    SPLIT = auto()
    WHOLE = auto()
    CONSTANT = auto()


@dataclass
class _Argument:
    """A leaf of the arguments: `batch['x']`."""

    name: str
    kind: _Kind
    axis: int = 0
    constant: Any = None


class _Arguments:
    """Arguments of a function as fields of samples, and back; how they were in its first call."""

    def __init__(
        self, values: dict[str, Any], non_split: frozenset[str], axes: dict[str, int]
    ) -> None:
        for name in [*non_split, *axes]:
            if name not in values:
                raise TypeError(
                    f"the step function has no argument {name!r}; it has {', '.join(values)}"
                )
        self._leaves: list[_Argument] = []
        self._specs = {}
        for root, value in values.items():
            paths, self._specs[root] = pytree.tree_flatten_with_path(value)
            for path, leaf in paths:
                name = root + pytree.keystr(path)
                if not isinstance(leaf, torch.Tensor):
                    self._leaves.append(_Argument(name, _Kind.CONSTANT, constant=leaf))
                elif root in non_split or leaf.dim() == 0:
                    self._leaves.append(_Argument(name, _Kind.WHOLE))
                else:
                    self._leaves.append(_Argument(name, _Kind.SPLIT, axes.get(root, 0)))
        self.num_samples = self.count_samples(values)

    def fields_of(self, values: dict[str, Any]) -> list[tuple[str, torch.Tensor]]:
        """[samples, ...] by name."""
        count = self.count_samples(values)
        fields = []
        for argument, leaf in zip(self._leaves, self._flatten(values), strict=True):
            if isinstance(leaf, torch.Tensor) and argument.kind is not _Kind.CONSTANT:
                fields.append((argument.name, _to_rows(argument, leaf.detach(), count)))
            elif argument.kind is not _Kind.CONSTANT or not _is_same(argument.constant, leaf):
                was = "a tensor" if argument.kind is not _Kind.CONSTANT else repr(argument.constant)
                raise ValueError(
                    f"{argument.name} was {was} in the first call of the step, which was recorded, and is {leaf!r} "
                    "now; pass what changes as a tensor"
                )
        return fields

    def values_of(self, fields: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        """The arguments of a microbatch."""
        leaves = iter(self._from_rows(argument, fields) for argument in self._leaves)
        return {
            root: pytree.tree_unflatten([next(leaves) for _ in range(spec.num_leaves)], spec)
            for root, spec in self._specs.items()
        }

    def _flatten(self, values: dict[str, Any]) -> list[Any]:
        flat: list[Any] = []
        for root, spec in self._specs.items():
            leaves, now = pytree.tree_flatten(values.get(root))
            if root not in values or now != spec:
                raise ValueError(
                    f"the argument {root} is built otherwise than in the first call of the step, which was recorded"
                )
            flat.extend(leaves)
        return flat

    def count_samples(self, values: dict[str, Any]) -> int:
        """How many samples the tensors have that are split."""
        found = {
            argument.name: leaf.size(argument.axis)
            for argument, leaf in zip(self._leaves, self._flatten(values), strict=True)
            if argument.kind is _Kind.SPLIT
        }
        if len(set(found.values())) != 1:
            sizes = ", ".join(f"{name}: {size}" for name, size in found.items())
            raise ValueError(
                f"the tensors of a step have one number of samples, and these have {sizes or 'none'}; name what is not "
                "to be split in non_split_inputs, other dimensions in input_split_axes"
            )
        return next(iter(found.values()))

    def _from_rows(self, argument: _Argument, fields: Mapping[str, torch.Tensor]) -> Any:
        if argument.kind is _Kind.CONSTANT:
            return argument.constant
        rows = fields[argument.name]
        if argument.kind is _Kind.WHOLE:
            return rows[0]
        return rows.movedim(0, argument.axis) if argument.axis else rows


def _to_rows(argument: _Argument, tensor: torch.Tensor, count: int) -> torch.Tensor:
    if argument.kind is _Kind.WHOLE:
        return tensor.expand(count, *tensor.shape)
    return tensor.movedim(argument.axis, 0) if argument.axis else tensor


def _is_same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(a == b))


class _StepFunction:
    """A step function: the training step of its model, or in eval mode an evaluation."""

    def __init__(
        self, function: Callable[..., Any], non_split: frozenset[str], axes: dict[str, int]
    ) -> None:
        self._function = function
        self._signature = inspect.signature(function)
        self._non_split, self._axes = non_split, axes
        self._arguments: _Arguments | None = None
        self._kept = Kept()
        self._returned: Returned | None = None
        self._evaluation: Evaluation | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        model = _model_of(dict(bound.arguments))
        if model.module.training:
            return self._train(model, bound)
        return self._evaluate(model, bound)

    def _train(self, model: DistributedModel, bound: inspect.BoundArguments) -> Any:
        values = dict(bound.arguments)
        if self._arguments is None:
            arguments = _Arguments(values, self._non_split, self._axes)
            forward = self._forward(model, arguments, bound)
            model._split(self, forward, arguments.fields_of(values), arguments.num_samples)
            self._arguments = arguments
        count = self._arguments.count_samples(values)
        if not 0 < count <= self._arguments.num_samples:
            raise ValueError(
                f"the batch has {count} samples, that of the first step had {self._arguments.num_samples}; a later one "
                "has from 1 to as many"
            )
        self._kept.begin_step()
        sizes = model._sizes(count)
        sums = model._backward_of(self, self._arguments.fields_of(values), len(sizes))
        return self._outputs(model, sums, sizes)

    def _evaluate(self, model: DistributedModel, bound: inspect.BoundArguments) -> Any:
        values = dict(bound.arguments)
        if self._evaluation is None:
            if self._arguments is not None:
                raise RuntimeError(
                    "this step function trains, and the model is in eval mode: write another one for evaluations, "
                    "or call model.train()"
                )
            arguments = _Arguments(values, self._non_split, self._axes)
            forward = self._forward(model, arguments, bound)
            self._evaluation = model._record_evaluation(forward, arguments.fields_of(values))
            self._arguments = arguments
        assert self._arguments is not None
        fields = self._arguments.fields_of(values)
        sizes = model._sizes(self._arguments.count_samples(values))
        self._kept.begin_step()
        return self._outputs(model, self._evaluation.run(fields, sizes), sizes)

    def _outputs(self, model: DistributedModel, sums: list[list[float]], sizes: list[int]) -> Any:
        assert self._returned is not None
        self._kept.share(model.world)
        return self._returned.outputs(sums, sizes)

    def _forward(
        self, model: DistributedModel, arguments: _Arguments, bound: inspect.BoundArguments
    ) -> Callable[[dict[str, torch.Tensor]], list[Loss]]:
        """The body as a forward pass of named fields, for the recorder."""
        trains = model.module.training

        def forward(fields: dict[str, torch.Tensor]) -> list[Loss]:
            call = inspect.BoundArguments(self._signature, bound.arguments)
            call.arguments = arguments.values_of(fields)
            with model._recording(trains) as recorded, self._kept.paused():
                returned = self._function(*call.args, **call.kwargs)
                self._returned = Returned(returned, recorded.loss(), recorded.weight, self._kept)
            return self._returned.losses

        return forward


def _model_of(values: dict[str, Any]) -> DistributedModel:
    given = [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, DistributedModel)]
    return given[0] if given else model_in_use()
