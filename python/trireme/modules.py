"""A torch.nn.Module as the engine takes it."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from trireme import _core
from trireme.form import Form
from trireme.losses import to_losses
from trireme.opaque_code import compiling, name_by_place

LossFunction = Callable[[torch.nn.Module, Any], Any]


def to_model(
    module: torch.nn.Module,
    loss: LossFunction | None,
    form: Form,
    scalars: Mapping[str, Callable[[int], float]],
    precision: str = "f32",
) -> _core.Model:
    """The module with its loss: `loss(module, batch)`, or where there is none what the module returns.

    A module that is in eval mode before (frozen statistics) stays so.
    """
    names = tuple(scalars)

    def forward(fields: dict[str, torch.Tensor]) -> list[_core.Loss]:
        batch = form.batch_of(fields, names)
        return to_losses(loss(module, batch) if loss else _call(module, batch))

    return core_model(module, forward, scalars, precision)


# What torch's autocast makes of matrix products, convolutions and the like; f32: nothing.
_DTYPES = {"f32": None, "bf16": torch.bfloat16, "f16": torch.float16}


def core_model(
    module: torch.nn.Module,
    forward: Callable[[dict[str, torch.Tensor]], list[_core.Loss]],
    scalars: Mapping[str, Callable[[int], float]],
    precision: str = "f32",
) -> _core.Model:
    """A forward of named fields over the module's parameters, under torch's autocast to bf16 or f16."""
    if precision not in _DTYPES:
        raise TypeError(f"precision is one of {', '.join(_DTYPES)}, not {precision!r}")
    name_by_place(module)
    traceable = _Traceable(_in_precision(forward, _DTYPES[precision]))
    return _core.Model(
        list(module.named_parameters(remove_duplicate=False)),
        list(module.named_buffers(remove_duplicate=False)),
        traceable,
        mode_setter(module),
        traceable.set_traced,
        list(scalars.items()),
    )


def _in_precision(
    forward: Callable[[dict[str, torch.Tensor]], list[_core.Loss]], dtype: torch.dtype | None
) -> Callable[[dict[str, torch.Tensor]], list[_core.Loss]]:
    if dtype is None:
        return forward

    def under_autocast(fields: dict[str, torch.Tensor]) -> list[_core.Loss]:
        with torch.autocast("cpu", dtype):
            return forward(fields)

    return under_autocast


class _Traceable:
    """A forward that says when it is to do without control flow by data, as torch.compile and torch.export do:
    `torch.compiler.is_compiling()` is true meanwhile. Libraries then take masks as they come, say, instead of looking
    whether any is needed."""

    def __init__(self, forward: Callable[[dict[str, torch.Tensor]], list[_core.Loss]]) -> None:
        self._forward = forward
        self._is_traced = False

    def set_traced(self, traced: bool) -> bool:
        """Returns what was set before."""
        before, self._is_traced = self._is_traced, traced
        return before

    def __call__(self, fields: dict[str, torch.Tensor]) -> list[_core.Loss]:
        with compiling(torch.compiler.is_compiling() or self._is_traced):
            return self._forward(fields)


def mode_setter(module: torch.nn.Module) -> Callable[[bool], None]:
    """Sets train or eval mode; what is in eval mode now (frozen statistics) stays so."""
    modes = {name: part.training for name, part in module.named_modules()}

    def set_training(training: bool) -> None:
        for name, part in module.named_modules():
            part.training = training and modes.get(name, True)

    return set_training


def _call(module: torch.nn.Module, batch: Any) -> Any:
    if isinstance(batch, dict):
        return module(**batch)
    return module(*batch) if isinstance(batch, tuple) else module(batch)


def first_names(module: torch.nn.Module) -> dict[str, str]:
    """The names of parameters and buffers in a state dict, and the first name of the same tensor."""
    first: dict[int, str] = {}
    tensors = [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]
    names = {name: first.setdefault(id(tensor), name) for name, tensor in tensors}
    return {name: names[name] for name in module.state_dict(keep_vars=True) if name in names}
