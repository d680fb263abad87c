"""Data sets as users have them -> what the engine reads samples from."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from trireme import _core
from trireme.fixed_records import FixedRecords
from trireme.repeated import Repeated

Fields = Mapping[str, torch.Tensor]
Lengths = Mapping[str, int]


class Padded:
    """A data set whose samples differ in length, and the lengths that the samples of a microbatch are padded to: the
    first that holds all of them. Samples of a step are dealt to its microbatches so that little is padded.

    data       a map-style data set, as for Session; its tensors are dense, at their own lengths.
    lengths    shortest first, by name of the dimension: {"words": [32, 64, 128]}; the last holds every sample. Of
               several dimensions each has as many, taken together. The model is recorded at each: few are better.
    dims       where they are: {"tokens": {0: "words"}, "labels": {0: "words"}}; keys as of a sample, positions of a
               tuple.
    padding    what stands behind a shorter sample, by field; else 0.
    length_of  index -> length, or lengths by name; else a sample is read to find them, once.

    Raises ValueError where names or numbers do not fit.
    """

    def __init__(
        self,
        data: Dataset[Any],
        lengths: Mapping[str, list[int]],
        dims: Mapping[str | int, Mapping[int, str]],
        *,
        padding: Mapping[str | int, float] | None = None,
        length_of: Callable[[int], int | Lengths] | None = None,
    ) -> None:
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
        self.dims = {_name_of(field): dict(named) for field, named in dims.items()}
        self.padding = {_name_of(field): float(value) for field, value in (padding or {}).items()}
        self._length_of = length_of
        self._known: dict[int, Lengths] = {}
        self._form = Form(data[0])
        unknown = {*self.dims, *self.padding} - {name for name, _ in self._form.fields_of(data[0])}
        if unknown:
            raise ValueError(f"samples have no fields {sorted(unknown)}")

    def lengths_of(self, index: int) -> Lengths:
        """Of a sample, by name."""
        if index not in self._known:
            self._known[index] = self._find(index)
        return self._known[index]

    def _find(self, index: int) -> Lengths:
        if self._length_of is not None:
            found = self._length_of(index)
            return (
                found if isinstance(found, Mapping) else dict.fromkeys(self.padded[0], int(found))
            )
        fields = dict(self._form.fields_of(self.data[index]))
        lengths: dict[str, int] = {}
        for field, named in self.dims.items():
            for dim, name in named.items():
                size = fields[field].shape[dim]
                if lengths.setdefault(name, size) != size:
                    raise ValueError(
                        f"sample {index} has {lengths[name]} and {size} as the length of '{name}'"
                    )
        return lengths


Samples: TypeAlias = (
    Fields | tuple[torch.Tensor, ...] | Dataset[Any] | Padded | FixedRecords | Repeated
)


class Form:
    """How a batch looks to the model: a dict of the samples' keys, a tuple, or one tensor."""

    def __init__(self, sample: Any) -> None:
        self._kind = (
            "dict" if isinstance(sample, Mapping) else "tuple" if _is_tuple(sample) else "one"
        )
        self._names = list(sample) if isinstance(sample, Mapping) else []

    def fields_of(self, sample: Any) -> list[tuple[str, torch.Tensor]]:
        """By name; those of a tuple are called `input 0`, `input 1`, ..."""
        if self._kind == "dict":
            return [(str(name), _to_tensor(sample[name])) for name in self._names]
        values = sample if self._kind == "tuple" else (sample,)
        return [(f"input {i}", _to_tensor(value)) for i, value in enumerate(values)]

    def batch_of(self, fields: dict[str, torch.Tensor], scalars: tuple[str, ...]) -> Any:
        """The batch in this form; scalars of the step beside it where it is a dict."""
        if self._kind == "dict":
            return fields
        values = [fields[f"input {i}"] for i in range(len(fields) - len(scalars))]
        if scalars:
            return (*values, {name: fields[name] for name in scalars})
        return tuple(values) if self._kind == "tuple" else values[0]


def to_source(data: Samples, identity: str = "") -> tuple[_core.Source, Form]:
    """A source of the samples, and the form that batches of them have.

    data      tensors by name or in a tuple, each [num_samples, ...]; or a map-style data set of dicts, tuples or
              tensors that are alike in shape and dtype, or differ as Padded says; or either as Repeated repeats it.
              Every rank reads samples by index.
    identity  tells these samples from others for a run that resumes; else a fingerprint of some of them.
    """
    if isinstance(data, Repeated):
        source, form = (
            to_source(data.data, identity)
            if data.augment is None
            else _python_source(data.data, identity, data)
        )
        return _core.repeated_source(source, data.times, data.block_samples), form
    if isinstance(data, FixedRecords):
        return data.source, Form(data[0])
    if isinstance(data, TensorDataset):
        data = tuple(data.tensors)
    if isinstance(data, (Mapping, tuple, list, torch.Tensor)):
        form = Form(data)
        return _core.tensor_source(form.fields_of(data)), form
    return _python_source(data, identity)


def _python_source(
    data: Any, identity: str, repeated: Repeated | None = None
) -> tuple[_core.Source, Form]:
    """Of a map-style data set, at the lengths of one that is Padded; of samples as `repeated` augments them."""
    varying = data if isinstance(data, Padded) else None
    samples = data.data if isinstance(data, Padded) else data
    _check_map_style(samples)

    def plain(index: int, visit: int) -> Any:
        return samples[index]

    read = repeated.reader(samples.__getitem__) if repeated else plain
    first = read(0, 0)
    form = Form(first)
    return (
        _core.python_source(
            len(samples),
            form.fields_of(first),
            lambda index, visit: [t for _, t in form.fields_of(read(index, visit))],
            identity,
            varying.padded if varying else [],
            varying.dims if varying else {},
            varying.padding if varying else {},
            varying.lengths_of if varying else None,
        ),
        form,
    )


def _check_map_style(data: Any) -> None:
    if isinstance(data, DataLoader):
        raise TypeError(
            "data is a DataLoader; give its data set (loader.dataset) and batch_size: every rank reads "
            "the samples that it needs by index, ahead of the step"
        )
    if isinstance(data, IterableDataset) or not hasattr(data, "__getitem__"):
        raise TypeError(
            f"data is a {type(data).__name__}, whose samples have no index; give a map-style data set "
            "(__len__ and __getitem__), or use trireme.step, which takes batches from your own loop"
        )


def _name_of(field: str | int) -> str:
    return f"input {field}" if isinstance(field, int) else field


def _is_tuple(sample: Any) -> bool:
    return isinstance(sample, (tuple, list))


def _to_tensor(value: Any) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
