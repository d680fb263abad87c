"""Samples that C++ reads, as a data set."""

import operator
from collections.abc import Iterator, Sequence

import torch

from trireme import _core


class SourceSamples(Sequence[dict[str, torch.Tensor]]):
    """What opens files as samples: as a Session's data it is read by C++, ahead of the steps, without Python.

    Elsewhere a sequence of samples, and so a map-style data set, whose crops and other draws are those of the first
    epoch whenever a sample is taken by index: `sample` takes those of others. Safe to use from several threads.
    """

    def __init__(self, source: _core.Source) -> None:
        self.source = source

    def __len__(self) -> int:
        return self.source.num_samples

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:  # type: ignore[override]
        return self.sample(index)

    def sample(self, index: int, visit: int = 0) -> dict[str, torch.Tensor]:
        """As it is met for the time `visit`, from 0 on: what is random differs from one to the next."""
        place = operator.index(index)
        return dict(_core.sample_of(self.source, place + len(self) if place < 0 else place, visit))

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        return (self[i] for i in range(len(self)))

    @property
    def reading(self) -> str:
        """How they are read here, and why, where there is something to say."""
        return self.source.reading
