"""What a tracer of Python makes of a module, beside the module itself."""

import copy
from typing import Any

import torch

Values = tuple[Any, ...]


def is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def outcome(module: Any, inputs: Values) -> list[torch.Tensor]:
    """What a call returns, the gradients of its floating inputs, and those of the module's parameters."""
    given = [
        value.detach().clone().requires_grad_() if is_float(value) else value for value in inputs
    ]
    torch.manual_seed(3)
    made = module(*given)
    outputs = list(made) if isinstance(made, tuple) else [made]
    differentiable = [value for value in outputs if value.requires_grad]
    if differentiable:
        weights = [torch.linspace(-1, 2, value.numel()) for value in differentiable]
        sum(
            (value.flatten() * weight).sum()
            for value, weight in zip(differentiable, weights, strict=True)
        ).backward()
    gradients = [value.grad for value in (*given, *module.parameters()) if is_float(value)]
    return [*outputs, *(gradient for gradient in gradients if gradient is not None)]


def assert_equal(actual: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.shape == theirs.shape
        assert torch.equal(ours, theirs)


def check_compiled(module: torch.nn.Module, *batches: Values) -> None:
    """By torch.compile: outputs, gradients and buffers are those of the module, bit for bit, for inputs of all these
    shapes."""
    traced = copy.deepcopy(module)
    compiled = torch.compile(traced, backend="aot_eager")
    for inputs in batches:
        for parameter in (*module.parameters(), *traced.parameters()):
            parameter.grad = None
        assert_equal(outcome(compiled, inputs), outcome(module, inputs))
    assert_equal(list(traced.buffers()), list(module.buffers()))


def check_exported(module: torch.nn.Module, inputs: Values, operator: str) -> None:
    """By torch.export: the operator is one node, and the program does what the module does, before and after it is
    decomposed."""
    program = torch.export.export(module, inputs)
    assert any(operator in str(node.target) for node in program.graph.nodes), program.graph
    expected = outcome(module, inputs)[0].detach()
    with torch.no_grad():
        for made in (program, program.run_decompositions()):
            torch.manual_seed(3)
            output = made.module()(*inputs)
            assert torch.equal(output[0] if isinstance(output, tuple) else output, expected)
