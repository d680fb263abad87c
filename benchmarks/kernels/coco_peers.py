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
