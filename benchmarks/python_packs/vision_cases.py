"""Boxes, regions, COCO."""

import contextlib
import copy
import io
import json
import tempfile
from pathlib import Path

import numpy as np
import torch

import trireme.nn
import trireme.vision
from case import Case, beside, case, random
from registry import Outputs


def some_boxes(count: int, side: float) -> np.ndarray:
    corners = random().uniform(0, 300, (count, 2))
    sides = random().uniform(1, side, (count, 2))
    return np.concatenate([corners, corners + sides], 1).astype(np.float32)


@case("coco/boxes")
def coco_boxes(threads: int) -> Case:
    """1,000 images, 80 classes, 100,000 detections, both as pycocotools' objects."""
    from pycocotools.coco import COCO

    generator = random()
    images = [{"id": i, "height": 480, "width": 640} for i in range(1000)]
    boxes = np.concatenate(
        [generator.uniform(0, 300, (7000, 2)), generator.uniform(8, 160, (7000, 2))], 1
    )
    annotations = [
        {
            "id": i + 1,
            "image_id": i % 1000,
            "category_id": i // 7 % 80,
            "bbox": box,
            "area": box[2] * box[3],
            "iscrowd": 0,
        }
        for i, box in enumerate(boxes.tolist())
    ]
    places = generator.integers(0, 7000, 100_000)
    found = np.maximum(boxes[places] + generator.normal(scale=8, size=(100_000, 4)), 1)
    rows = np.column_stack([places % 1000, found, generator.random(100_000), places // 7 % 80])
    folder = Path(tempfile.mkdtemp())
    truth = {
        "images": images,
        "categories": [{"id": k, "name": str(k)} for k in range(80)],
        "annotations": annotations,
    }
    (folder / "annotations.json").write_text(json.dumps(truth))
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(folder / "annotations.json"))
        detections = coco.loadRes(rows)

    def run() -> Outputs:
        evaluation = trireme.vision.COCOeval(coco, detections, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation.summarize()
        return {"stats": evaluation.stats}

    return beside("coco", "faster-coco-eval", threads, {"rows": rows}, run, 1e-12, folder)


@case("nms/8732")
def nms(threads: int) -> Case:
    boxes, scores = some_boxes(8732, 60), random().random(8732).astype(np.float32)
    tensors = {"boxes": boxes, "scores": scores, "classes": np.zeros(8732, np.int64)}
    given = torch.from_numpy(boxes), torch.from_numpy(scores)
    return beside(
        "nms", "torchvision", threads, tensors, lambda: {"kept": trireme.vision.nms(*given, 0.5)}, 0
    )


@case("batched_nms/80x1000")
def batched_nms(threads: int) -> Case:
    boxes = some_boxes(80_000, 40)
    scores = (random().permutation(80_000) / 80_000).astype(
        np.float32
    )  # no ties: their order is open
    tensors = {"boxes": boxes, "scores": scores, "classes": np.arange(80_000) % 80}
    given = [torch.from_numpy(tensors[name]) for name in ("boxes", "scores", "classes")]

    def run() -> Outputs:
        kept = trireme.vision.batched_nms(given[0], given[1], given[2], 0.5)
        return {"kept": kept}

    return beside("nms", "torchvision", threads, tensors, run, 0)


@case("roi_align/256x7x7x256")
def roi_align(threads: int) -> Case:
    features = random().standard_normal((2, 100, 136, 256)).astype(np.float32)
    regions = np.concatenate([np.arange(256)[:, None] % 2, some_boxes(256, 80) / 4], 1)
    tensors = {"features": features, "regions": regions.astype(np.float32)}
    x = torch.from_numpy(features).permute(0, 3, 1, 2).requires_grad_()
    boxes = torch.from_numpy(tensors["regions"])

    def run() -> Outputs:
        out = trireme.vision.roi_align(x, boxes, 7, 1.0, 2, aligned=True)
        (gradient,) = torch.autograd.grad(out, x, out.detach())
        return {
            "out": out.detach().permute(0, 2, 3, 1),
            "gradient": gradient.permute(0, 2, 3, 1),
        }

    return beside("roi_align", "torchvision", threads, tensors, run, has_backward="1")


@case("ssd_loss/8x8732x81")
def ssd_loss(threads: int) -> Case:
    """Matching, hard negatives and both losses of 8 images with 1 to 15 boxes, forward and backward."""
    del threads  # set for the process
    from types import SimpleNamespace

    from torchvision.models.detection._utils import BoxCoder, SSDMatcher
    from torchvision.models.detection.ssd import SSD
    from torchvision.ops import box_iou

    generator = torch.Generator().manual_seed(1)
    anchors = torch.from_numpy(some_boxes(8732, 150) / 300)
    counts = [1, 15, 4, 7, 2, 9, 5, 3]
    truth = [torch.from_numpy(some_boxes(15, 200) / 300)[:count] for count in counts]
    classes = [torch.randint(1, 81, (count,), generator=generator) for count in counts]
    padded = torch.zeros(8, 15, 4), torch.zeros(8, 15, dtype=torch.int64)
    for i, count in enumerate(counts):
        padded[0][i, :count], padded[1][i, :count] = truth[i], classes[i]
    logits = torch.randn(8, 8732, 81, generator=generator).requires_grad_()
    codes = torch.randn(8, 8732, 4, generator=generator).requires_grad_()

    def with_gradients(losses: torch.Tensor) -> Outputs:
        by_logits, by_codes = torch.autograd.grad(losses.sum(), (logits, codes))
        return {"losses": losses.detach(), "logits": by_logits, "codes": by_codes}

    def ours() -> Outputs:
        boxes, entropies, matched = trireme.vision.ssd_loss(codes, logits, *padded, anchors)
        sums = torch.stack([boxes.sum(), entropies.sum()])
        return with_gradients(sums / matched.sum().clamp_min(1))

    model = SimpleNamespace(box_coder=BoxCoder(weights=(10.0, 10.0, 5.0, 5.0)), neg_to_pos_ratio=3)
    matcher = SSDMatcher(0.5)

    def theirs() -> Outputs:
        targets = [{"boxes": b, "labels": c} for b, c in zip(truth, classes, strict=True)]
        matched = [matcher(box_iou(one["boxes"], anchors)) for one in targets]
        head = {"bbox_regression": codes, "cls_logits": logits}
        losses = SSD.compute_loss(model, targets, head, [anchors] * 8, matched)
        return with_gradients(torch.stack([losses["bbox_regression"], losses["classification"]]))

    return Case(ours, theirs, f"torchvision {torchvision_version()}")


class FusedBottleneck(torch.nn.Module):
    """A block of torchvision's ResNet-50 with norm, sum and ReLU in one operator each."""

    def __init__(self, block: torch.nn.Module) -> None:
        super().__init__()
        self.convolutions = torch.nn.ModuleList([block.conv1, block.conv2, block.conv3])
        self.norms = torch.nn.ModuleList(
            fused_norm(norm, relu=True) for norm in (block.bn1, block.bn2, block.bn3)
        )
        shortcut = block.downsample
        self.shortcut = None if shortcut is None else fused(shortcut[0], shortcut[1], relu=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.shortcut is None else self.shortcut(x)
        first, second, third = self.convolutions
        x = self.norms[0](first(x))
        x = self.norms[1](second(x))
        return self.norms[2](third(x), shortcut)


def fused_norm(norm: torch.nn.BatchNorm2d, *, relu: bool) -> torch.nn.Module:
    made = trireme.nn.BatchNorm2d(norm.num_features, relu=relu)
    made.load_state_dict(norm.state_dict())
    return made


def fused(
    convolution: torch.nn.Module, norm: torch.nn.BatchNorm2d, *, relu: bool
) -> torch.nn.Module:
    return torch.nn.Sequential(convolution, fused_norm(norm, relu=relu))


def resnet50(dtype: torch.dtype) -> Case:
    """Forward and backward of torchvision's ResNet-50, channels last, with fused norms and with torch's."""
    import torchvision

    torch.manual_seed(1)
    plain = torchvision.models.resnet50().to(memory_format=torch.channels_last)
    ours = copy.deepcopy(plain)
    ours.bn1, ours.relu = fused_norm(ours.bn1, relu=True), torch.nn.Identity()
    for layer in (ours.layer1, ours.layer2, ours.layer3, ours.layer4):
        for i, block in enumerate(layer):
            layer[i] = FusedBottleneck(block)
    images = torch.randn(8, 3, 224, 224).to(memory_format=torch.channels_last)
    labels = torch.arange(8)

    def step(model: torch.nn.Module) -> Outputs:
        model.zero_grad()
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            scores = model(images)
        loss = torch.nn.functional.cross_entropy(scores.float(), labels)
        loss.backward()
        if dtype != torch.float32:  # whose gradients are a tenth away from those of f32, for both
            return {"loss": loss.detach()}
        return {"loss": loss.detach(), "gradient": model.fc.weight.grad}

    return Case(
        lambda: step(ours),
        lambda: step(plain),
        f"torchvision {torchvision_version()}",
        tolerance=1e-3 if dtype == torch.float32 else 1e-2,
    )


@case("resnet50/8x224")
def resnet50_f32(threads: int) -> Case:
    del threads
    return resnet50(torch.float32)


@case("resnet50/8x224_bf16")
def resnet50_bf16(threads: int) -> Case:
    del threads
    return resnet50(torch.bfloat16)


def torchvision_version() -> str:
    import torchvision

    return str(torchvision.__version__)
