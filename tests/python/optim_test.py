"""Optimizers beside those of torch, timm and transformers."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

import trireme.optim

SHAPES = ((1,), (1000,), (33, 65), (4, 3, 3, 3), (70_000,))
Make = Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]


def timm_optimizers() -> Any:
    return pytest.importorskip("timm.optim", reason="timm is not installed; ./dev test installs it")


def trained(make: Make, dtype: torch.dtype, shapes: Any = SHAPES) -> list[torch.Tensor]:
    """After five steps of random gradients, the last layout being channels last."""
    generator = torch.Generator().manual_seed(1)
    values = [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]
    values.append(values[3].to(memory_format=torch.channels_last).clone())
    parameters = [torch.nn.Parameter(value) for value in values]
    optimizer = make(parameters)
    for _ in range(5):
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=dtype)
        optimizer.step()
    return [parameter.detach() for parameter in parameters]


def check(ours: Make, theirs: Make, dtype: torch.dtype = torch.float32) -> None:
    for mine, other in zip(trained(ours, dtype), trained(theirs, dtype), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sgd_and_adamw_are_those_of_torch(dtype: torch.dtype) -> None:
    sgd: list[dict[str, Any]] = [
        {},
        {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True},
        {"momentum": 0.9, "dampening": 0.5},
    ]
    for options in sgd:
        ours = partial(trireme.optim.SGD, lr=1e-2, **options)
        check(ours, partial(torch.optim.SGD, lr=1e-2, **options), dtype)
    for decay in (0.0, 0.3):
        ours = partial(trireme.optim.AdamW, lr=1e-2, weight_decay=decay)
        check(ours, partial(torch.optim.AdamW, lr=1e-2, weight_decay=decay), dtype)


def test_lamb_is_that_of_timm() -> None:
    for decay, always in ((0.1, False), (0.0, False), (0.0, True)):
        options: dict[str, Any] = {"weight_decay": decay, "always_adapt": always}
        judge = partial(timm_optimizers().Lamb, max_grad_norm=None, **options)
        check(partial(trireme.optim.Lamb, **options), judge)


def test_lars_is_that_of_timm() -> None:
    for decay, always in ((0.1, False), (0.0, False), (0.0, True)):
        options: dict[str, Any] = {
            "lr": 0.1,
            "momentum": 0.9,
            "weight_decay": decay,
            "always_adapt": always,
        }
        check(partial(trireme.optim.Lars, **options), partial(timm_optimizers().Lars, **options))


def test_novograd_is_that_of_timm() -> None:
    for averages in (False, True):
        options: dict[str, Any] = {"lr": 1e-2, "weight_decay": 1e-2, "grad_averaging": averages}
        judge = partial(timm_optimizers().NvNovoGrad, **options)
        check(partial(trireme.optim.NovoGrad, **options), judge)


def test_adafactor_is_that_of_transformers() -> None:
    transformers = pytest.importorskip(
        "transformers.optimization", reason="transformers is not installed; ./dev test installs it"
    )
    for options in (
        {},
        {"warmup_init": True},
        {"lr": 0.05, "relative_step": False, "weight_decay": 0.1, "beta1": 0.9},
        {"lr": 0.05, "relative_step": False, "scale_parameter": False},
    ):
        check(
            partial(trireme.optim.Adafactor, **options),
            partial(transformers.Adafactor, **options),
        )


def test_state_moves_from_and_to_torch() -> None:
    parameter = torch.nn.Parameter(torch.linspace(-1, 1, 100).view(4, 25))
    twin = torch.nn.Parameter(parameter.detach().clone())
    first, second = torch.optim.AdamW([parameter]), trireme.optim.AdamW([twin])
    for _ in range(2):
        for value, optimizer in ((parameter, first), (twin, second)):
            value.grad = value.detach().sin()
            optimizer.step()
        state = first.state_dict()
        first.load_state_dict(second.state_dict())
        second.load_state_dict(state)
    torch.testing.assert_close(parameter, twin)


@pytest.mark.parametrize("name", trireme.optim.__all__)
def test_what_is_saved_goes_on_with_the_same_bits(name: str) -> None:
    options = {"momentum": 0.9} if name in ("SGD", "Lars") else {}
    make = partial(getattr(trireme.optim, name), **options)
    whole, parted = (torch.nn.Parameter(torch.linspace(-1, 2, 60).view(4, 15)) for _ in range(2))
    first, second = make([whole]), make([parted])
    for step in range(4):
        for value, optimizer in ((whole, first), (parted, second)):
            value.grad = value.detach().sin()
            optimizer.step()
        if step == 1:
            saved = copy.deepcopy(second.state_dict())
            second = make([parted])
            second.load_state_dict(saved)
    assert torch.equal(whole, parted)


def test_groups_schedules_and_closures() -> None:
    slow, fast = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    groups = [{"params": [slow], "lr": 0.1}, {"params": [fast]}]
    optimizer = trireme.optim.SGD(groups, lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = slow.sum() + fast.sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 6
    schedule.step()
    optimizer.step(closure)
    torch.testing.assert_close(slow.detach(), torch.full((3,), 0.85))
    torch.testing.assert_close(fast.detach(), torch.full((3,), -0.5))


def test_what_is_refused() -> None:
    half = torch.nn.Parameter(torch.ones(3).half())
    with pytest.raises(ValueError, match="parameter 0 of the group is .* of type torch.float16"):
        trireme.optim.AdamW([half])
    with pytest.raises(ValueError, match="lr is 0 or more, and is -1"):
        trireme.optim.Lamb([torch.nn.Parameter(torch.ones(3))], lr=-1)
    with pytest.raises(ValueError, match="beta2 is in .*, and is 1.5"):
        trireme.optim.NovoGrad([torch.nn.Parameter(torch.ones(3))], betas=(0.9, 1.5))
    with pytest.raises(ValueError, match="lr is None with relative_step=True"):
        trireme.optim.Adafactor([torch.nn.Parameter(torch.ones(3))], lr=0.1)
