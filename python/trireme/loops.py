"""What training loops of other frameworks have in common here: batches of a data set, each replica's part of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import default_collate

from trireme import ranks

Collate = Callable[[list[Any]], Any]


def batches(
    data: Sequence[Any],
    size: int,
    *,
    seed: int | None,
    epoch: int = 0,
    collate: Collate | None = None,
) -> Iterator[Any]:
    """This replica's part of each batch of an epoch; `size` samples of each replica. What is left at the end, less
    than a batch of all replicas, is dropped.

    seed   of the order, another one in each epoch; None: in the order of the data set.
    """
    count, replicas, replica = len(data), ranks.rdp_size(), ranks.rdp_rank()
    order = torch.arange(count)
    if seed is not None:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(seed + epoch))
    for begin in range(0, count - size * replicas + 1, size * replicas):
        mine = order[begin + replica * size : begin + (replica + 1) * size]
        yield (collate or default_collate)([data[int(i)] for i in mine])


def batches_in_epoch(count: int, size: int) -> int:
    """How many batches `batches` gives."""
    return count // (size * ranks.rdp_size())
