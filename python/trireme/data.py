"""Data sets as users have them -> what the engine reads samples from."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from trireme import _core
from trireme.form import Form
from trireme.mixed import Mixed
from trireme.packed import Packed
from trireme.padded import Padded
from trireme.repeated import Repeated
from trireme.skip_damaged import SkipDamaged
from trireme.source_samples import SourceSamples

Fields: TypeAlias = Mapping[str, torch.Tensor]
Samples: TypeAlias = (
    Fields
    | tuple[torch.Tensor, ...]
    | Dataset[Any]
    | Padded
    | SourceSamples
    | Mixed
    | Packed
    | Repeated
    | SkipDamaged
)


def to_source(
    data: Samples,
    identity: str = "",
    *,
    repeated: Repeated | None = None,
    skipping: SkipDamaged | None = None,
    part: str = "",
) -> tuple[_core.Source, Form]:
    """A source of the samples, and the form that batches of them have.

    data      tensors by name or in a tuple, each [num_samples, ...]; or a map-style data set of dicts, tuples or
              tensors that are alike in shape and dtype, or differ as Padded says; or any of these in Repeated, Mixed,
              Packed or SkipDamaged. Every rank reads samples by index.
    identity  tells these samples from others for a run that resumes; else a fingerprint of some of them.
    repeated  who augments samples where `data` is within it; skipping: whose damaged samples are passed over; part:
              which one of a mixture it is.
    """
    if isinstance(data, Repeated):
        augmenting = data if data.augment is not None else None
        source, form = to_source(data.data, identity, repeated=augmenting, part=part)
        return _core.repeated_source(source, data.times, data.block_samples), form
    if isinstance(data, Mixed):
        found = [
            to_source(one, identity, repeated=repeated, part=f"{part} {number}")
            for number, (one, _) in enumerate(data.parts)
        ]
        return data.source([source for source, _ in found]), found[0][1]
    if isinstance(data, Packed):
        if repeated is not None or skipping is not None:
            raise TypeError(
                "data is Packed, and augment and SkipDamaged take single samples; put them within it"
            )
        source, form = to_source(data.data, identity, part=part)
        return _core.packed_source(source, data.row, data.max_segments, data.open_rows), form
    if isinstance(data, SkipDamaged):
        source, form = to_source(data.data, identity, repeated=repeated, skipping=data, part=part)
        return _core.skip_damaged(source, data.max_skipped, data.quarantine), form
    if repeated is not None:
        return _python_source(data, identity, repeated, skipping, part)
    if isinstance(data, SourceSamples):
        return data.source, Form(data[0])
    if isinstance(data, TensorDataset):
        data = tuple(data.tensors)
    if isinstance(data, (Mapping, tuple, list, torch.Tensor)):
        form = Form(data)
        return _core.tensor_source(form.fields_of(data)), form
    return _python_source(data, identity, None, skipping, part)


def has_own_order(data: Samples) -> bool:
    """Whether samples come in an order of the data's own, which a training need not shuffle."""
    return isinstance(data, Mixed) or (isinstance(data, Repeated) and has_own_order(data.data))


def _python_source(
    data: Any, identity: str, repeated: Repeated | None, skipping: SkipDamaged | None, part: str
) -> tuple[_core.Source, Form]:
    """Of a map-style data set, at the lengths of one that is Padded; of samples as `repeated` augments them."""
    varying = data if isinstance(data, Padded) else None
    samples = data.data if isinstance(data, Padded) else data
    _check_map_style(samples)
    read = samples.sample if isinstance(samples, SourceSamples) else _read_by_index(data)
    if skipping is not None:
        read = skipping.telling(read)
    lengths_of = varying.lengths_of if varying else None
    if lengths_of is not None and skipping is not None:
        lengths_of = skipping.telling(lengths_of)

    if repeated is not None:
        read = repeated.reader(read, part)
    if varying is not None and repeated is None:
        first = varying.first
    else:
        first = skipping.first_whole(read, len(samples)) if skipping else read(0, 0)
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
            lengths_of,
        ),
        form,
    )


def _read_by_index(data: Any) -> Callable[[int, int], Any]:
    """What reads a sample, the same one whenever it is met."""
    read = data.sample if isinstance(data, Padded) else data.__getitem__
    return lambda index, visit: read(index)


def _check_map_style(data: Any) -> None:
    if isinstance(data, (Mapping, tuple, list, torch.Tensor)):
        raise TypeError(
            "`augment` takes single samples, and data is tensors; give a map-style data set, as "
            "torch.utils.data.TensorDataset"
        )
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
