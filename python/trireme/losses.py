"""What a forward pass returns: named losses, means or sums with weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from trireme import _core
from trireme._core import Loss

LossLike = torch.Tensor | Loss | Mapping[str, Any] | Sequence[Any]


def mean_loss(mean: torch.Tensor, name: str = "loss", coefficient: float = 1.0) -> Loss:
    """A mean over the samples of a microbatch, 0-dim; each sample weighs 1."""
    return _core.mean_loss(mean, name, coefficient)


def sum_loss(
    total: torch.Tensor, weight: torch.Tensor, name: str = "loss", coefficient: float = 1.0
) -> Loss:
    """A sum, 0-dim, and what it is to be divided by (tokens, boxes) once both are totals of the step."""
    return _core.sum_loss(total, weight, name, coefficient)


def metric(value: torch.Tensor, name: str, weight: torch.Tensor | None = None) -> Loss:
    """Reported beside the loss, without a gradient: a mean, or with `weight` a sum."""
    if weight is None:
        return _core.mean_loss(value, name, 0.0)
    return _core.sum_loss(value, weight, name, 0.0)


def output(values: torch.Tensor, name: str) -> Loss:
    """What the model says of each sample, for `metrics` of a Session; training leaves it out.

    values   [samples, ...], of any dtype: a result of the forward, or a field of the batch.
    """
    return _core.output(values, name)


def to_losses(returned: Any) -> list[Loss]:
    """From a tensor, a Loss, several of them, a mapping by name, or an output that has a `loss`."""
    if isinstance(returned, torch.Tensor):
        return [mean_loss(returned)]
    if isinstance(returned, Loss):
        return [returned]
    if getattr(returned, "loss", None) is not None:  # an output of a Hugging Face model
        return [mean_loss(returned.loss)]
    if isinstance(returned, Mapping):
        return [
            value if isinstance(value, Loss) else mean_loss(value, name)
            for name, value in returned.items()
        ]
    if isinstance(returned, Sequence) and all(isinstance(item, Loss) for item in returned):
        return list(returned)
    raise TypeError(
        f"the loss is a {type(returned).__name__}; return a 0-dim tensor, trireme.mean_loss(..), "
        "trireme.sum_loss(..), a list of these, or a dict of them by name"
    )
