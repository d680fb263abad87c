"""What a step function returns, brought from the stages that compute it to every rank."""

import contextlib
import io
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from trireme import losses, ranks
from trireme._core import Loss, Opaque, World


class StepOutput:
    """One thing that a step function has returned, for each microbatch of this replica.

    outputs   tensors, in order; without gradient.
    sizes     samples of each microbatch; as many in each where they are not given.
    """

    def __init__(self, outputs: Sequence[torch.Tensor], sizes: Sequence[int] = ()) -> None:
        self.outputs = list(outputs)
        self._sizes = list(sizes) or [1] * len(self.outputs)

    def reduce_mean(self) -> torch.Tensor:
        """Their mean, of a floating dtype and the shape of one; each weighs as many samples as its microbatch has."""
        values = self.stack()
        values = values if values.is_floating_point() else values.float()
        if len(set(self._sizes)) == 1:
            return values.mean(0)
        weights = torch.tensor(self._sizes, dtype=values.dtype) / sum(self._sizes)
        return torch.tensordot(weights, values, 1)

    def reduce_sum(self) -> torch.Tensor:
        """Their sum, of the shape of one."""
        return self.stack().sum(0)

    def stack(self) -> torch.Tensor:
        """[microbatches, ...]"""
        return torch.stack(self.outputs)

    def concat(self) -> torch.Tensor:
        """[samples, ...]; of numbers [microbatches]."""
        return self.stack() if self.outputs[0].dim() == 0 else torch.cat(self.outputs)

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)


class Kept:
    """Returned tensors, kept where they are computed until the step has ended; then every rank gets those of its
    replica. Cost: a copy of each, and for each replica a broadcast to all ranks."""

    def __init__(self) -> None:
        self._tensors: dict[int, list[torch.Tensor]] = {}
        self._nodes: dict[int, Opaque] = {}
        self._eager: int | None = None  # the thread that calls the step function itself
        self._is_open = False  # a step runs: not a measurement

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """While the step function itself runs, to be recorded or compared with."""
        self._eager = threading.get_ident()
        try:
            yield
        finally:
            self._eager = None

    def keep(self, i: int, tensor: torch.Tensor) -> torch.Tensor:
        """Recorded as a node that keeps the tensor of each microbatch; returns a number that stands for it."""

        def run(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
            if self._is_open and threading.get_ident() != self._eager:
                self._tensors.setdefault(i, []).append(inputs[0].clone())
            return [torch.zeros(())]

        if i not in self._nodes:
            self._nodes[i] = Opaque(f"returned.{i}", run, [], [])
        return self._nodes[i]([tensor.detach()])[0]

    def begin_step(self) -> None:
        self._tensors.clear()
        self._is_open = True

    def share(self, world: World) -> None:
        """After a step; every rank calls it."""
        self._is_open = False
        if not self._nodes:
            return
        found: dict[int, list[torch.Tensor]] = {}
        own = self._packed()
        sizes = [int(size) for size in world.all_gather(torch.tensor(own.numel())).flatten()]
        places = world.all_gather(torch.tensor(ranks.rdp_rank())).flatten().tolist()
        for root, (size, replica) in enumerate(zip(sizes, places, strict=True)):
            if size == 0:
                continue
            packed = own if root == world.rank else torch.empty(size, dtype=torch.uint8)
            world.broadcast(packed, root)
            if replica == ranks.rdp_rank():
                found |= torch.load(io.BytesIO(packed.numpy()))
        self._tensors = found

    def of(self, i: int) -> list[torch.Tensor]:
        return self._tensors[i]

    def _packed(self) -> torch.Tensor:
        """As bytes; none where this rank has kept nothing."""
        if not self._tensors:
            return torch.empty(0, dtype=torch.uint8)
        file = io.BytesIO()
        torch.save(self._tensors, file)
        return torch.frombuffer(file.getbuffer(), dtype=torch.uint8)


@dataclass
class _Number:
    """A loss of the recording."""

    loss: int
    dtype: torch.dtype


class Returned:
    """The form of what a step function returns: where each of its tensors comes from."""

    def __init__(
        self,
        returned: Any,
        loss: torch.Tensor | None,
        weight: torch.Tensor | None,
        kept: Kept,
    ) -> None:
        leaves, self._spec = pytree.tree_flatten(returned)
        self.losses: list[Loss] = []
        if loss is not None:
            self.losses.append(
                losses.mean_loss(loss) if weight is None else losses.sum_loss(loss, weight)
            )
        self._is_sum = weight is not None
        self._kept = kept
        # Of each leaf: a number, which of the kept tensors, or what it is.
        self._leaves: list[Any] = [self._place(i, leaf, loss) for i, leaf in enumerate(leaves)]

    def outputs(self, sums: list[list[float]], sizes: Sequence[int]) -> Any:
        """Of the sums of each loss, by microbatch of the replica, and their samples."""
        leaves = [self._output(i, leaf, sums, sizes) for i, leaf in enumerate(self._leaves)]
        return pytree.tree_unflatten(leaves, self._spec)

    def _output(self, i: int, leaf: Any, sums: list[list[float]], sizes: Sequence[int]) -> Any:
        if leaf is Kept:
            return StepOutput(self._kept.of(i), sizes)
        if not isinstance(leaf, _Number):
            return leaf
        is_sum = leaf.loss == 0 and self._is_sum
        values = [
            row[leaf.loss] / (1 if is_sum else size) for row, size in zip(sums, sizes, strict=True)
        ]
        return StepOutput([torch.tensor(value, dtype=leaf.dtype) for value in values], sizes)

    def _place(self, i: int, leaf: Any, loss: torch.Tensor | None) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if loss is not None and leaf is loss:
            return _Number(0, leaf.dtype)
        is_kept = leaf.dim() != 0
        value = self._kept.keep(i, leaf) if is_kept else leaf.detach()
        value = value if value.is_floating_point() else value.float()
        coefficient = 0.0 if self.losses else 1.0  # in an evaluation one of them is the loss
        self.losses.append(losses.mean_loss(value, f"output {i}", coefficient))
        return Kept if is_kept else _Number(len(self.losses) - 1, leaf.dtype)
