"""Fused norms beside torch's modules."""

from typing import Any

import pytest
import torch

import trireme.nn

FORMS = {
    "2": ((9, 5), torch.contiguous_format, "BatchNorm1d"),
    "3": ((4, 5, 7), torch.contiguous_format, "BatchNorm1d"),
    "4": ((3, 5, 4, 6), torch.contiguous_format, "BatchNorm2d"),
    "4, channels last": ((3, 5, 4, 6), torch.channels_last, "BatchNorm2d"),
    "5": ((2, 5, 3, 4, 2), torch.channels_last_3d, "BatchNorm3d"),
}


def run(module: Any, x: torch.Tensor, residual: torch.Tensor | None, is_ours: bool) -> list[Any]:
    given = [t.detach().clone().requires_grad_() for t in (x, residual) if t is not None]
    if is_ours:
        y = module(*given)
    else:
        y = module(given[0])
        y = (y + given[1] if residual is not None else y).relu()
    weight = torch.linspace(-1, 2, y.numel()).view(y.shape)
    (y * weight).sum().backward()
    parameters = [p.grad for p in module.parameters()]
    return [y.detach(), *(t.grad for t in given), *parameters, *module.buffers()]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("has_residual", [False, True])
@pytest.mark.parametrize("is_training", [False, True])
def test_norms_are_those_of_torch(form: str, has_residual: bool, is_training: bool) -> None:
    shape, layout, name = FORMS[form]
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(shape, generator=generator).to(memory_format=layout)
    residual = torch.randn(shape, generator=generator) if has_residual else None
    theirs = getattr(torch.nn, name)(5)
    torch.nn.init.normal_(theirs.weight)
    ours = getattr(trireme.nn, name)(5, relu=True)
    ours.load_state_dict(theirs.state_dict())
    ours.train(is_training)
    theirs.train(is_training)
    for _ in range(2):
        ours.zero_grad()
        theirs.zero_grad()
        pairs = zip(run(ours, x, residual, True), run(theirs, x, residual, False), strict=True)
        for mine, other in pairs:
            torch.testing.assert_close(mine, other, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("options", [{"momentum": None}, {"track_running_stats": False}])
def test_statistics_as_torch_keeps_them(options: dict[str, Any]) -> None:
    ours, theirs = trireme.nn.BatchNorm1d(5, **options), torch.nn.BatchNorm1d(5, **options)
    for seed in range(3):
        x = torch.randn((9, 5), generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(ours(x), theirs(x))
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_instance_norm_is_that_of_torch(layout: torch.memory_format) -> None:
    x = torch.randn(3, 5, 4, 6).to(memory_format=layout)
    ours = trireme.nn.InstanceNorm(5, affine=True, relu=True)
    theirs = torch.nn.InstanceNorm2d(5, affine=True)
    for mine, other in zip(run(ours, x, None, True), run(theirs, x, None, False), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=2e-5)


def test_cross_entropy_is_that_of_torch() -> None:
    torch.manual_seed(1)
    logits = torch.randn(3, 7, 11, requires_grad=True)
    classes = torch.randint(11, (3, 7))
    counts = torch.arange(7) % 2
    (trireme.nn.cross_entropy(logits, classes) * counts).sum().backward()
    found, logits.grad = logits.grad, None
    losses = torch.nn.functional.cross_entropy(logits.mT, classes, reduction="none")
    (losses * counts).sum().backward()
    torch.testing.assert_close(found, logits.grad)
    torch.testing.assert_close(trireme.nn.cross_entropy(logits, classes), losses)
    torch.library.opcheck(torch.ops.trireme._cross_entropy.default, (logits.detach(), classes))
    with pytest.raises(RuntimeError, match="row 0 is of class 11"):
        trireme.nn.cross_entropy(logits, torch.full((3, 7), 11))


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 4D input"):
        trireme.nn.BatchNorm2d(5)(torch.randn(3, 5))
    with pytest.raises(RuntimeError, match="input must be of type Float or BFloat16, is Double"):
        trireme.nn.BatchNorm2d(5)(torch.randn(3, 5, 2, 2).double())
    with pytest.raises(RuntimeError, match=r"residual must have shape \[3, 5, 2, 2\]"):
        trireme.nn.BatchNorm2d(5)(torch.randn(3, 5, 2, 2), torch.randn(3, 5, 2, 1))
    with pytest.raises(RuntimeError, match="has no second derivative"):
        x = torch.randn(9, 5, requires_grad=True)
        y = trireme.nn.BatchNorm1d(5)(x)
        (gradient,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
        gradient.sum().backward()
