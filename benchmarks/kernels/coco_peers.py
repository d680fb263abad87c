"""Peers of the evaluation of COCO detections."""

from __future__ import annotations

import contextlib
import io
import json
from importlib.metadata import version
from typing import Any

import numpy as np

from registry import Inputs, Outputs, Peer, peer


def results(inputs: Inputs) -> list[dict[str, Any]]:
    if "rows" not in inputs.tensors:
        listed: list[dict[str, Any]] = json.loads((inputs.folder / "results.json").read_text())
        return listed
    return [
        {"image_id": int(row[0]), "bbox": row[1:5], "score": row[5], "category_id": int(row[6])}
        for row in inputs.tensors["rows"].tolist()
    ]


def evaluation(inputs: Inputs, package: str, coco: Any, evaluator: Any) -> Peer:  # noqa: ANN401
    """From loaded annotations and results to the figures."""
    kind = "bbox" if "rows" in inputs.tensors else "segm"
    with contextlib.redirect_stdout(io.StringIO()):
        truth = coco(str(inputs.folder / "annotations.json"))
        detections = truth.loadRes(results(inputs))

    def run() -> Outputs:
        with contextlib.redirect_stdout(io.StringIO()):
            made = evaluator(truth, detections, kind)
            made.evaluate()
            made.accumulate()
            made.summarize()
        return {"stats": np.asarray(made.stats, dtype=np.float64)[:12]}

    return Peer(f"{package} {version(package)}", run)


@peer("coco", "faster-coco-eval")
def faster_coco_eval(inputs: Inputs, threads: int) -> Peer:
    from faster_coco_eval import COCO, COCOeval_faster

    def evaluator(*arguments: Any) -> Any:  # noqa: ANN401
        return COCOeval_faster(*arguments, rle_iou_max_workers=threads)

    return evaluation(inputs, "faster-coco-eval", COCO, evaluator)


@peer("coco", "pycocotools")
def pycocotools(inputs: Inputs, threads: int) -> Peer:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    return evaluation(inputs, "pycocotools", COCO, COCOeval)


@peer("coco", "torchvision")
def torchvision(inputs: Inputs, threads: int) -> Peer:
    """Masks of the whole image by torchvision, a hundred at a time, encoded by pycocotools."""
    import torch
    from pycocotools import mask as masks_of_coco
    from torchvision.models.detection.roi_heads import paste_masks_in_image

    torch.set_num_threads(threads)
    masks = torch.from_numpy(inputs.tensors["masks"])[:, None]
    boxes = torch.from_numpy(inputs.tensors["boxes"])
    height, width = inputs.tensors["image"].tolist()

    def run() -> Outputs:
        areas: list[float] = []
        for some_masks, some_boxes in zip(masks.split(100), boxes.split(100), strict=True):
            pasted = paste_masks_in_image(some_masks, some_boxes, (height, width))[:, 0] > 0.5
            # Columns first, as pycocotools wants them.
            images = pasted.to(torch.uint8).transpose(1, 2).contiguous().numpy().T
            areas += masks_of_coco.area(masks_of_coco.encode(images)).tolist()
        return {"areas": np.asarray(areas, dtype=np.float64)}

    return Peer(f"torchvision {version('torchvision')}", run)
