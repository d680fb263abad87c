"""Data sets as users have them -> what the engine reads samples from."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from trireme import _core
from trireme.fixed_records import FixedRecords
from trireme.form import Form
from trireme.padded import Padded
from trireme.repeated import Repeated

Fields: TypeAlias = Mapping[str, torch.Tensor]
Samples: TypeAlias = (
    Fields | tuple[torch.Tensor, ...] | Dataset[Any] | Padded | FixedRecords | Repeated
)


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

    read_one = varying.sample if varying else samples.__getitem__

    def plain(index: int, visit: int) -> Any:
        return read_one(index)

    read = repeated.reader(read_one) if repeated else plain
    first = varying.first if varying is not None and repeated is None else read(0, 0)
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
