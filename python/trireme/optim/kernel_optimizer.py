"""What the optimizers share: the loop over parameters, and state in the layout of a parameter."""

from collections.abc import Callable, Iterable
from typing import Any

import torch

from trireme import _packs

Params = Iterable[torch.Tensor] | Iterable[dict[str, Any]]
Group = dict[str, Any]
State = dict[str, Any]
F32 = (torch.float32,)
F32_OR_F64 = (torch.float32, torch.float64)


class KernelOptimizer(torch.optim.Optimizer):
    """Sees to it that a kernel gets what it takes."""

    _dtypes: tuple[torch.dtype, ...] = F32

    def add_param_group(self, param_group: Group) -> None:
        super().add_param_group(param_group)
        for i, parameter in enumerate(param_group["params"]):
            is_dense = parameter.layout == torch.strided and parameter.device.type == "cpu"
            if parameter.dtype not in self._dtypes or not is_dense:
                raise ValueError(
                    f"{type(self).__name__} updates dense tensors on the CPU of type "
                    f"{' or '.join(map(str, self._dtypes))}; parameter {i} of the group is {parameter.layout} on "
                    f"{parameter.device} of type {parameter.dtype}: convert it, or give it to another optimizer"
                )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient. Returns what `closure` does."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step(group, parameter)
        return loss

    def _step(self, group: Group, parameter: torch.Tensor) -> None:
        gradient = parameter.grad
        assert gradient is not None
        if gradient.is_sparse:
            raise RuntimeError(f"{type(self).__name__} takes no sparse gradients; use sparse=False")
        if _packs.have_one_layout(parameter, gradient):
            self._update(group, self.state[parameter], parameter.detach(), gradient)
            return
        value = parameter.detach().clone(memory_format=torch.preserve_format)
        self._update(group, self.state[parameter], value, torch.empty_like(value).copy_(gradient))
        parameter.copy_(value)

    def _update(
        self, group: Group, state: State, value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        raise NotImplementedError


def count_step(state: State) -> int:
    """The number of this step, from 1."""
    step = int(state.get("step", 0)) + 1
    state["step"] = torch.tensor(float(step))
    return step


def kept(state: State, name: str, like: torch.Tensor) -> torch.Tensor:
    """A tensor of the state in the layout of a parameter; zeros at first."""
    kept = state.get(name)
    if kept is None:
        kept = torch.zeros_like(like, memory_format=torch.preserve_format)
    elif kept.stride() != like.stride() or kept.dtype != like.dtype:
        kept = torch.empty_like(like, memory_format=torch.preserve_format).copy_(kept)
    state[name] = kept
    return kept


def at_least(least: float, **options: float) -> None:
    for name, value in options.items():
        if not value >= least:
            raise ValueError(f"{name} is {least:g} or more, and is {value}")


def in_unit(**options: float) -> None:
    for name, value in options.items():
        if not 0 <= value < 1:
            raise ValueError(f"{name} is in [0, 1), and is {value}")
