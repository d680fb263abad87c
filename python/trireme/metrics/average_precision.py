"""Average precision of boxes: trireme.vision.COCOeval of all images."""

import contextlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from trireme.coco_evaluation import COCOeval
from trireme.metrics.metric import Metric, labels_of, output_of

_FIGURES = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl")


@dataclass(frozen=True)
class Part:
    """What is found, and what is there, on some images. Images are counted from 0 where the truth comes with them."""

    image_ids: np.ndarray  # i64 [samples]; empty where there are none
    found: list[np.ndarray]  # f64 [objects, 6] of each image: x, y, width, height, score, label
    truth: list[np.ndarray]  # f64 [objects, 5] of each: x, y, width, height, label


def average_precision(
    truth: Any = None,
    *,
    boxes: str = "boxes",
    scores: str = "scores",
    labels: str = "labels",
    images: str = "image_ids",
    true_boxes: str = "true_boxes",
    true_labels: str = "true_labels",
    prefix: str = "",
) -> Metric:
    """COCO's twelve figures of the boxes that are found on images, those of pycocotools bit for bit.

    truth     pycocotools' COCO, the dict of a COCO file or its path: of its images those count that come. None: what
              is there comes as outputs, too.
    boxes     name of the output [samples, objects, 4]: x1, y1, x2, y2 in pixels of the truth.
    scores    name of the output [samples, objects].
    labels    name of the output [samples, objects], integers: the truth's category ids; -1 or less where an image has
              no more objects.
    images    with `truth`: name of the output [samples] of the images' ids.
    true_boxes, true_labels   without `truth`: names of the outputs [samples, objects, 4] and [samples, objects], as
              boxes and labels; areas are those of the boxes, and none is a crowd.
    prefix    of the results' names, where there are several.
    Results   AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl; -1 where no box is of that size, as
              pycocotools has it.
    Errors    ValueError where shapes do not fit, a true box has no area, or an image comes twice or is not in `truth`;
              those of COCOeval.
    """
    if truth is None:
        return _AveragePrecision(None, boxes, scores, labels, (true_boxes, true_labels), prefix)
    return _AveragePrecision(truth, boxes, scores, labels, (images,), prefix)


@dataclass(frozen=True)
class _AveragePrecision(Metric):
    truth: Any
    boxes: str
    scores: str
    labels: str
    others: tuple[str, ...]
    prefix: str

    def of_part(self, outputs: dict[str, torch.Tensor]) -> Part:
        boxes, labels = self._pair(outputs, self.boxes, self.labels)
        scores = _as_f64(output_of(outputs, self.scores))
        if scores.shape != labels.shape:
            raise ValueError(
                f"output {self.scores!r} has shape {list(scores.shape)} and {self.labels!r} {list(labels.shape)}; give "
                "[samples, objects], both alike"
            )
        columns = np.concatenate([boxes, scores[..., None], labels[..., None]], 2)
        found = [objects[objects[:, 5] >= 0] for objects in columns]
        if self.truth is not None:
            (images,) = self.others
            return Part(labels_of(outputs, images).flatten().numpy(), found, [])
        true_boxes, true_labels = self._pair(outputs, *self.others)
        there = np.concatenate([true_boxes, true_labels[..., None]], 2)
        return Part(np.empty(0, np.int64), found, [rows[rows[:, 4] >= 0] for rows in there])

    def results(self, parts: list[Part]) -> Mapping[str, float]:
        found = [rows for part in parts for rows in part.found]
        if self.truth is None:
            ids = np.arange(len(found))
            truth = _dataset([rows for part in parts for rows in part.truth])
        else:
            ids = np.concatenate([part.image_ids for part in parts])
            truth = self.truth
        stats = self._evaluate(truth, ids, _rows(ids, found))
        return {self.prefix + name: value for name, value in zip(_FIGURES, stats, strict=True)}

    def _evaluate(self, truth: Any, ids: np.ndarray, rows: np.ndarray) -> list[float]:
        evaluation = COCOeval(truth, rows, "bbox")
        unknown = np.setdiff1d(ids, evaluation.params.imgIds)
        if len(np.unique(ids)) < len(ids) or len(unknown):
            raise ValueError(
                f"the truth has no image {unknown[0]}"
                if len(unknown)
                else "an image came twice; give each once"
            )
        evaluation.params.imgIds = ids.tolist()
        evaluation.evaluate()
        evaluation.accumulate()
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation.summarize()
        return [float(value) for value in evaluation.stats]

    def _pair(
        self, outputs: dict[str, torch.Tensor], boxes: str, labels: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """x, y, width, height; labels; f64."""
        corners, named = output_of(outputs, boxes), labels_of(outputs, labels)
        if named.dim() != 2 or corners.shape != (*named.shape, 4):
            raise ValueError(
                f"output {boxes!r} has shape {list(corners.shape)} and {labels!r} {list(named.shape)}; give boxes "
                "[samples, objects, 4] and labels [samples, objects]"
            )
        numbers = _as_f64(corners)
        numbers[..., 2:] -= numbers[..., :2]
        return numbers, _as_f64(named)


def _as_f64(values: torch.Tensor) -> np.ndarray:
    """A copy."""
    return values.to(torch.float64, copy=True).numpy()


def _rows(ids: np.ndarray, found: list[np.ndarray]) -> np.ndarray:
    """[objects, 7] as COCOeval takes them."""
    parts = [np.insert(rows, 0, image, axis=1) for image, rows in zip(ids, found, strict=True)]
    return np.concatenate(parts) if parts else np.empty((0, 7))


def _dataset(truth: list[np.ndarray]) -> dict[str, Any]:
    """As a COCO file."""
    annotations: list[dict[str, Any]] = []
    for image, rows in enumerate(truth):
        for x, y, width, height, label in rows.tolist():
            if not (width > 0 and height > 0):
                raise ValueError(
                    f"sample {image} has a true box of label {label:g} without an area, {width:g} x {height:g}; where "
                    "there is no object the label is -1"
                )
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image,
                    "category_id": int(label),
                    "bbox": [x, y, width, height],
                    "area": width * height,
                    "iscrowd": 0,
                }
            )
    categories = sorted({annotation["category_id"] for annotation in annotations})
    return {
        "images": [{"id": image} for image in range(len(truth))],
        "categories": [{"id": category, "name": str(category)} for category in categories],
        "annotations": annotations,
    }
