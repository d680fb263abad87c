"""Samples that are read once and used several times ("data echoing"; docs/guides/bring_your_own_data.md).

photos = trireme.Repeated(Photos(paths), times=4, augment=crop)
trireme.Session(model, loss, photos, batch_size=256, microbatch_size=32)
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

if TYPE_CHECKING:
    from trireme.data import Samples

Augment: TypeAlias = Callable[[Any, torch.Generator], Any]


class Repeated:
    """A data set of whose samples a training uses each `times` times before it drops them, as data::repeat in C++.

    data           as for Session. With `augment` a map-style data set, Padded, SkipDamaged or Mixed ones.
    times          1 to 2^20. An epoch has so many times the steps.
    block_samples  that are in use at a time, of all ranks together, at least a batch: an epoch's order is cut into
                   blocks of whole batches, each is met `times` times before the next one, each time in other batches.
    augment        (sample, generator) -> sample, called for each use; the model gets its result. What data gives
                   is kept for all uses of a block and must not be written into. None: nothing is kept, the data set is
                   asked for each use.
    seed           of the generators.

    Order     a function of the session's seed, the epoch, the batch size and the position; a run resumes exactly.
    Draws     of `augment` have to come from its generator, which is seeded by (seed, index, use): they do not depend on
              ranks and threads, and a run that resumes has the same.
    Memory    up to block_samples samples in a process; mostly its share of a block.
    Threads   `augment` is called by several.

    Give an evaluation `data` itself. Raises ValueError or TypeError where arguments do not fit.
    """

    def __init__(
        self,
        data: "Samples",
        times: int,
        *,
        block_samples: int = 2048,
        augment: Augment | None = None,
        seed: int = 0,
    ) -> None:
        if isinstance(data, Repeated):
            raise TypeError(
                "data is Repeated already; give one of the two the product of both times"
            )
        if augment is not None and isinstance(data, (dict, tuple, list, torch.Tensor)):
            raise TypeError(
                "augment takes single samples, and data is tensors; give a map-style data set, as "
                "torch.utils.data.TensorDataset"
            )
        if not 1 <= times <= 1 << 20 or block_samples < 1:
            raise ValueError(
                f"times is {times} and block_samples {block_samples}; give 1 to 2^20 times, and 1 sample or more"
            )
        self.data = data
        self.times = times
        self.block_samples = block_samples
        self.augment = augment
        self.seed = seed

    def reader(self, read: Callable[[int, int], Any], part: str = "") -> Callable[[int, int], Any]:
        """(index, visit) -> augmented sample, over (index, epoch) -> sample; `part` tells parts of a mixture apart."""
        kept = _Kept(read, self.times, self.block_samples)

        def augmented(index: int, visit: int) -> Any:
            assert self.augment is not None
            generator = self._generator(f"{index} {visit}{part}")
            return self.augment(kept.sample(index, visit), generator)

        return augmented

    def _generator(self, use: str) -> torch.Generator:
        key = hashlib.blake2b(f"{self.seed} {use}".encode(), digest_size=4).digest()
        return torch.Generator().manual_seed(int.from_bytes(key, "little"))


class _Kept:
    """Samples between the uses of a block. What has no room, or was dropped, is read again. Thread-safe."""

    def __init__(self, read: Callable[[int, int], Any], times: int, capacity: int) -> None:
        self._read = read
        self._times = times
        self._capacity = capacity
        self._lock = threading.Lock()  # of what follows
        self._kept: OrderedDict[tuple[int, int], Any] = OrderedDict()  # by index and epoch
        self._used: dict[tuple[int, int], set[int]] = {}

    def sample(self, index: int, visit: int) -> Any:
        epoch, use = divmod(visit, self._times)
        key = (index, epoch)
        with self._lock:
            if key in self._kept:
                sample = self._kept[key]
                self._mark(key, use)
                return sample
        sample = self._read(index, epoch)
        with self._lock:
            self._kept[key] = sample
            self._used.setdefault(key, set())
            self._mark(key, use)
            while len(self._kept) > self._capacity:
                oldest, _ = self._kept.popitem(last=False)
                del self._used[oldest]
        return sample

    def _mark(self, key: tuple[int, int], use: int) -> None:
        """The last use drops it. A use that is read twice, as for a recording, counts once."""
        self._used[key].add(use)
        if len(self._used[key]) == self._times:
            del self._kept[key], self._used[key]
