"""Samples of different lengths, each microbatch padded to one of a few (docs/guides/train_your_own_model.md).

sentences = trireme.Padded(data, {"words": [32, 64, 128]}, {"tokens": {0: "words"}})
trireme.Session(model, loss, sentences, batch_size=64, microbatch_size=8)
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from torch.utils.data import Dataset

from trireme.form import Form, name_of
from trireme.source_samples import SourceSamples

Lengths: TypeAlias = Mapping[str, int]


class Padded:
    """A data set whose samples differ in length, and the lengths that the samples of a microbatch are padded to: the
    first that holds all of them. Samples of a step are dealt to its microbatches so that little is padded.

    data       a map-style data set, as for Session; its tensors are dense, at their own lengths.
    lengths    shortest first, by name of the dimension: {"words": [32, 64, 128]}; the last holds every sample. Of
               several dimensions each has as many, taken together. The model is recorded at each: few are better.
    dims       where they are: {"tokens": {0: "words"}, "labels": {0: "words"}}; keys as of a sample, positions of a
               tuple.
    padding    what stands behind a shorter sample, by field; else 0.
    length_of  index -> length, or lengths by name; else a sample is read to find them, once, by every rank.
    keep_bytes of samples that were read for their length and wait for their use, of each process. What has no room,
               the oldest first, is read again for its use.

    Raises ValueError where names or numbers do not fit, TypeError for SourceSamples. Safe to use from several threads.
    """

    def __init__(
        self,
        data: Dataset[Any],
        lengths: Mapping[str, list[int]],
        dims: Mapping[str | int, Mapping[int, str]],
        *,
        padding: Mapping[str | int, float] | None = None,
        length_of: Callable[[int], int | Lengths] | None = None,
        keep_bytes: int = 256 << 20,
    ) -> None:
        if isinstance(data, SourceSamples):
            raise TypeError(
                "data is SourceSamples, which C++ pads to the lengths that it was opened with; give it as it is"
            )
        numbers = {len(choices) for choices in lengths.values()}
        if len(numbers) != 1 or numbers == {0}:
            raise ValueError(
                f"lengths has {sorted(numbers)} lengths for its dimensions; give each as many, one at least"
            )
        self.data = data
        self.padded: list[dict[str, int]] = [
            dict(zip(lengths, together, strict=True))
            for together in zip(*lengths.values(), strict=True)
        ]
        self.dims = {name_of(field): dict(named) for field, named in dims.items()}
        self.padding = {name_of(field): float(value) for field, value in (padding or {}).items()}
        self._length_of = length_of
        self._finding = threading.RLock()  # a sample is read by one of those who ask for its length
        self._known: dict[int, Lengths] = {}
        self._waiting = _Waiting(keep_bytes)
        self.first = data[0]
        self._form = Form(self.first)
        fields = dict(self._form.fields_of(self.first))
        unknown = {*self.dims, *self.padding} - {*fields}
        if unknown:
            raise ValueError(f"samples have no fields {sorted(unknown)}")
        if length_of is None:
            self._known[0] = self._take_lengths(0, self.first)

    def lengths_of(self, index: int) -> Lengths:
        """Of a sample, by name."""
        known = self._known.get(index)
        if known is not None:
            return known
        with self._finding:
            if index not in self._known:
                self._known[index] = self._find(index)
            return self._known[index]

    def sample(self, index: int) -> Any:
        """A sample for its use: the one that waits since its length was found, else read."""
        found = self._waiting.take(index)
        return self.data[index] if found is None else found[0]

    def _find(self, index: int) -> Lengths:
        if self._length_of is None:
            return self._take_lengths(index, self.data[index])
        found = self._length_of(index)
        return found if isinstance(found, Mapping) else dict.fromkeys(self.padded[0], int(found))

    def _take_lengths(self, index: int, sample: Any) -> Lengths:
        """Of a sample that was read for them, which then waits."""
        fields = dict(self._form.fields_of(sample))
        lengths: dict[str, int] = {}
        for field, named in self.dims.items():
            for dim, name in named.items():
                size = fields[field].shape[dim]
                if lengths.setdefault(name, size) != size:
                    raise ValueError(
                        f"sample {index} has {lengths[name]} and {size} as the length of '{name}'"
                    )
        self._waiting.keep(index, sample, sum(tensor.nbytes for tensor in fields.values()))
        return lengths


class _Waiting:
    """Samples by index, as many as have room; the oldest go first. Thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()  # of what follows
        self._bytes = 0
        self._samples: OrderedDict[int, tuple[Any, int]] = OrderedDict()  # with their bytes

    def keep(self, index: int, sample: Any, num_bytes: int) -> None:
        if num_bytes > self._max_bytes:
            return
        with self._lock:
            self._samples[index] = (sample, num_bytes)
            self._bytes += num_bytes
            while self._bytes > self._max_bytes:
                _, (_, freed) = self._samples.popitem(last=False)
                self._bytes -= freed

    def take(self, index: int) -> tuple[Any, int] | None:
        """The sample and its bytes, which is not kept any longer; None where it is not there."""
        with self._lock:
            found = self._samples.pop(index, None)
            if found is not None:
                self._bytes -= found[1]
            return found
