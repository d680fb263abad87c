"""Boxes, regions, COCO."""

import contextlib
import io
import json
import tempfile
from pathlib import Path

import numpy as np
import torch

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
