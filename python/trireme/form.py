"""How a sample, and a batch of them, looks to the user: a dict, a tuple or one tensor."""

from collections.abc import Mapping
from typing import Any

import torch


class Form:
    """How a batch looks to the model: a dict of the samples' keys, a tuple, or one tensor."""

    def __init__(self, sample: Any) -> None:
        self._kind = (
            "dict" if isinstance(sample, Mapping) else "tuple" if is_tuple(sample) else "one"
        )
        self._names = list(sample) if isinstance(sample, Mapping) else []

    def fields_of(self, sample: Any) -> list[tuple[str, torch.Tensor]]:
        """By name; those of a tuple are called `input 0`, `input 1`, ..."""
        if self._kind == "dict":
            return [(str(name), to_tensor(sample[name])) for name in self._names]
        values = sample if self._kind == "tuple" else (sample,)
        return [(f"input {i}", to_tensor(value)) for i, value in enumerate(values)]

    def batch_of(self, fields: dict[str, torch.Tensor], scalars: tuple[str, ...]) -> Any:
        """The batch in this form; scalars of the step beside it where it is a dict."""
        if self._kind == "dict":
            return fields
        values = [fields[f"input {i}"] for i in range(len(fields) - len(scalars))]
        if scalars:
            return (*values, {name: fields[name] for name in scalars})
        return tuple(values) if self._kind == "tuple" else values[0]


def name_of(field: str | int) -> str:
    return f"input {field}" if isinstance(field, int) else field


def is_tuple(sample: Any) -> bool:
    return isinstance(sample, (tuple, list))


def to_tensor(value: Any) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
