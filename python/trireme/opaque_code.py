"""Code that cannot be recorded, as one node of the graph that calls back into Python."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from trireme import _core


@contextlib.contextmanager
def compiling(value: bool) -> Iterator[None]:
    """What `torch.compiler.is_compiling()` says meanwhile."""
    before = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = value
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before


class Opaque(torch.nn.Module):
    """A module or function that runs in Python on whichever rank has it: custom `autograd.Function`s, code whose
    control flow or shapes depend on data.

        self.route = trireme.opaque(Route())          # a module, with its parameters
        y = trireme.opaque(MyFunction.apply)(x)        # a function of tensors

    It takes tensors by position and returns a tensor or a tuple of them, which share no memory with what it took;
    random numbers inside come from the node's stream. It is never cut, and costs the interpreter's lock while it runs.

    name   unique in the model; None: its place in the model, or for one that no module holds what it wraps.
    """

    def __init__(self, code: torch.nn.Module | Callable[..., Any], name: str | None = None) -> None:
        super().__init__()
        self.code = code
        self._name = name or str(getattr(code, "__qualname__", type(code).__name__))
        self._is_named = name is not None
        self._returns_one = True
        self._opaque: _core.Opaque | None = None

    def forward(self, *inputs: torch.Tensor) -> Any:
        for i, value in enumerate(inputs):
            if not isinstance(value, torch.Tensor):
                raise TypeError(
                    f"{self._name} takes tensors by position, and argument {i} is a {type(value).__name__}; give it "
                    "other things when it is made"
                )
        if self._opaque is None:  # now that the module's parameters are what they will be
            module = self.code if isinstance(self.code, torch.nn.Module) else torch.nn.Module()
            self._opaque = _core.Opaque(
                self._name, self._run, list(module.named_parameters()), list(module.named_buffers())
            )
        outputs = self._opaque(list(inputs))
        return outputs[0] if self._returns_one else tuple(outputs)

    def place(self, path: str) -> None:
        """It is called after its place, unless it has a name."""
        if not self._is_named and path:
            self._name = path

    def _run(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        with compiling(False):  # it runs as it is, in stages too
            returned = self.code(*inputs)
        self._returns_one = isinstance(returned, torch.Tensor)
        return [returned] if self._returns_one else list(returned)


def opaque(code: torch.nn.Module | Callable[..., Any], name: str | None = None) -> Opaque:
    """`Opaque(code, name)`."""
    return Opaque(code, name)


def name_by_place(model: torch.nn.Module) -> None:
    """Names the opaque code of a model after where it is."""
    for path, module in model.named_modules():
        if isinstance(module, Opaque):
            module.place(path)
