"""Data sets as users have them -> what the engine reads samples from."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from trireme import _core

Fields = Mapping[str, torch.Tensor]
Samples: TypeAlias = Fields | tuple[torch.Tensor, ...] | Dataset[Any]


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
              tensors that are alike in shape and dtype. Every rank reads samples of it by index.
    identity  tells these samples from others for a run that resumes; else a fingerprint of some of them.
    """
    if isinstance(data, TensorDataset):
        data = tuple(data.tensors)
    if isinstance(data, (Mapping, tuple, list, torch.Tensor)):
        form = Form(data)
        return _core.tensor_source(form.fields_of(data)), form
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
    form = Form(data[0])
    return (
        _core.python_source(
            len(data),
            form.fields_of(data[0]),
            _reader(data, form),
            identity,
        ),
        form,
    )


def _reader(data: Dataset[Any], form: Form) -> Callable[[int, int], list[torch.Tensor]]:
    def read(index: int, visit: int) -> list[torch.Tensor]:
        return [tensor for _, tensor in form.fields_of(data[index])]

    return read


def _is_tuple(sample: Any) -> bool:
    return isinstance(sample, (tuple, list))


def _to_tensor(value: Any) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
