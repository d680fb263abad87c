"""Every operator of the packs under torch.compile, torch.export and torch.library.opcheck."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.library import opcheck

import trireme.nn
import trireme.speech
import trireme.text
import trireme.vision
from tracing import Values, check_compiled, check_exported

FRAMES, LABELS = torch.tensor([6, 4]), torch.tensor([3, 0])
TARGETS = torch.tensor([[1, 4, 2], [3, 3, 3]])
REGIONS = torch.tensor([[1.0, 0.5, 1, 6, 7.5], [0.0, 2, 2, 5, 7]])


class Call(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__()
        self.function = function
        self.options = options

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs, **self.options)


def attended(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **options: Any) -> Any:
    return trireme.text.attention(query, key, value, torch.tensor([5, 2]), **options)


def packed(query: torch.Tensor, **options: Any) -> Any:
    return trireme.text.packed_attention(query, query, query, torch.tensor([0, 5, 7]), **options)


def pooled(features: torch.Tensor) -> Any:
    return trireme.vision.roi_align(features, REGIONS, (2, 3), 0.9, 2, True)


def joined(f: torch.Tensor, g: torch.Tensor, **options: Any) -> Any:
    return trireme.speech.transducer_joint(f, g, FRAMES, LABELS, **options)


def lost(logits: torch.Tensor) -> Any:
    return trireme.speech.transducer_loss(logits, TARGETS, FRAMES, LABELS)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


HEADS = (random(2, 5, 3, 4), random(2, 5, 3, 4) + 1, random(2, 5, 3, 4) - 1)
MODULES: dict[str, tuple[torch.nn.Module, Values, str]] = {
    "attention": (Call(attended, is_causal=True), HEADS, "trireme.attention"),
    "attention, dropped": (Call(attended, dropout_p=0.2), HEADS, "trireme.attention"),
    "attention, bf16": (
        Call(attended, bias=random(3, 5, 5)),
        tuple(value.bfloat16() for value in HEADS),
        "trireme.attention",
    ),
    "packed_attention": (Call(packed), (random(7, 3, 4),), "trireme.packed_attention"),
    "roi_align": (Call(pooled), (random(2, 3, 8, 9),), "trireme.roi_align"),
    "transducer_joint": (
        Call(joined, dropout_p=0.1),
        (random(2, 6, 8), random(2, 4, 8)),
        "trireme.transducer_joint",
    ),
    "transducer_loss": (Call(lost), (random(2, 6, 4, 5),), "trireme.transducer_loss"),
    "batch_norm": (
        trireme.nn.BatchNorm2d(4, relu=True),
        (random(3, 4, 5, 2), random(3, 4, 5, 2)),
        "trireme.batch_norm",
    ),
    "batch_norm, channels last": (
        trireme.nn.BatchNorm2d(4),
        (random(3, 4, 5, 2).to(memory_format=torch.channels_last),),
        "trireme.batch_norm",
    ),
    "instance_norm": (
        trireme.nn.InstanceNorm(4, affine=True, relu=True),
        (random(3, 4, 5, 2),),
        "trireme.instance_norm",
    ),
    "instance_norm, channels last": (
        trireme.nn.InstanceNorm(4, affine=True, relu=True),
        (random(3, 4, 5, 2).to(memory_format=torch.channels_last),),
        "trireme.instance_norm",
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_compiled_modules_are_the_modules(name: str) -> None:
    module, inputs, _ = MODULES[name]
    torch._dynamo.reset()
    check_compiled(module, inputs)


@pytest.mark.parametrize("name", MODULES)
def test_exported_modules_are_the_modules(name: str) -> None:
    module, inputs, operator = MODULES[name]
    check_exported(module.eval(), inputs, operator)


def test_shapes_may_vary() -> None:
    torch._dynamo.reset()
    module = Call(trireme.nn.instance_norm, relu=True)
    check_compiled(module, *((random(n, 4, n + 2, 2),) for n in (2, 3, 5)))
    torch._dynamo.reset()
    norm = trireme.nn.BatchNorm2d(4, relu=True)
    check_compiled(norm, *((random(n, 4, 5, 2),) for n in (2, 3, 5)))
    torch._dynamo.reset()
    module = Call(trireme.text.attention)
    check_compiled(module, *((random(n, 5, 3, 4),) * 3 for n in (2, 3, 5)))


def test_kept_boxes_are_traced_with_a_size_that_varies() -> None:
    corners = torch.rand((20, 2), generator=torch.Generator().manual_seed(1))
    boxes = torch.cat([corners, corners + 0.3], 1)
    scores = torch.rand((20,), generator=torch.Generator().manual_seed(2))
    program = torch.export.export(Call(trireme.vision.nms, iou_threshold=0.5), (boxes, scores))
    expected = trireme.vision.nms(boxes, scores, 0.5)
    assert torch.equal(program.module()(boxes, scores), expected)
    torch._dynamo.reset()
    compiled = torch.compile(Call(trireme.vision.nms, iou_threshold=0.5), backend="aot_eager")
    assert torch.equal(compiled(boxes, scores), expected)


ops = torch.ops.trireme
NORM = (random(3, 4, 5, 2), torch.ones(4), torch.zeros(4))
JOINT = (random(2, 6, 8), random(2, 4, 8), FRAMES, LABELS)
BOXES = torch.tensor([[[0.0, 0, 2, 2], [0, 0, 2, 1.9], [4, 4, 5, 5]]])
SCORES = torch.tensor([[0.5, 0.7, 0.1]])
OPERATORS: dict[str, tuple[Any, Values]] = {
    "roi_align": (ops.roi_align, (random(2, 3, 8, 9).requires_grad_(), REGIONS, 2, 3)),
    "_roi_align": (ops._roi_align, (random(2, 3, 8, 9), REGIONS, 2, 3, 1.0, 0, False)),
    "_roi_align_backward": (
        ops._roi_align_backward,
        (random(2, 3, 2, 3), REGIONS, [2, 3, 8, 9], 1.0, 0, False),
    ),
    "nms": (ops.nms, (BOXES[0], SCORES[0], 0.5)),
    "batched_nms": (ops.batched_nms, (BOXES[0], SCORES[0], torch.tensor([0, 0, 1]), 0.5)),
    "fixed_nms": (ops.fixed_nms, (BOXES, SCORES, torch.tensor([[0, 0, 1]]), 0.5, 5)),
    "hard_negatives": (ops.hard_negatives, (SCORES, torch.tensor([[True, False, False]]), 1.0)),
    "fixed_nonzero": (ops.fixed_nonzero, (torch.tensor([[True, False, True]]), 4)),
    "ssd_targets": (ops.ssd_targets, (BOXES, torch.tensor([[1, 2, 0]]), BOXES[0] + 0.5, 0.5)),
    "ssd_loss": (
        ops.ssd_loss,
        (
            random(1, 3, 4).requires_grad_(),
            random(1, 3, 5).requires_grad_(),
            BOXES,
            torch.tensor([[1, 2, 0]]),
            BOXES[0] + 0.5,
        ),
    ),
    "transducer_joint": (
        ops.transducer_joint,
        (JOINT[0].requires_grad_(), JOINT[1].requires_grad_(), FRAMES, LABELS),
    ),
    "transducer_joint, packed": (
        ops._transducer_joint,
        (JOINT[0].detach(), JOINT[1].detach(), FRAMES, LABELS, 0.0, True),
    ),
    "transducer_loss": (
        ops.transducer_loss,
        (random(2, 6, 4, 5).requires_grad_(), TARGETS, FRAMES, LABELS),
    ),
    "attention": (ops.attention, tuple(x.clone().requires_grad_() for x in HEADS)),
    "packed_attention": (
        ops.packed_attention,
        (*[random(7, 3, 4).requires_grad_()] * 3, torch.tensor([0, 5, 7])),
    ),
    "token_rows": (ops.token_rows, (torch.tensor([5, 2]), 5)),
    "_order_tokens": (ops._order_tokens, (torch.tensor([5, 2]), 5)),
    "instance_norm": (ops.instance_norm, (random(3, 4, 5, 2).requires_grad_(), *NORM[1:])),
    "_batch_norm": (ops._batch_norm, (*NORM, random(3, 4, 5, 2), 1e-5, True, 0)),
    "_batch_norm, of groups": (ops._batch_norm, (*NORM, None, 1e-5, True, 2)),
    "_instance_norm": (ops._instance_norm, (*NORM, 1e-5, True)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_what_they_say_they_are(name: str) -> None:
    operator, arguments = OPERATORS[name]
    opcheck(operator.default, arguments)
