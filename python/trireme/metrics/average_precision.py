"""Average precision of boxes and masks: trireme.vision.COCOeval of all images."""

import contextlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import torch

from trireme.coco_data import chosen_truth
from trireme.coco_evaluation import COCOeval
from trireme.metrics.metric import Metric, labels_of, output_of
from trireme.metrics.object_masks import ObjectMasks, area_of

_FIGURES = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl")


Segmentation = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """What is found, and what is there, on some images. Images are counted from 0 where the truth comes with them."""

    image_ids: np.ndarray  # i64 [samples]; empty where there are none
    found: list[np.ndarray]  # f64 [objects, 6] of each image: x, y, width, height, score, label
    truth: list[np.ndarray]  # f64 [objects, 5] of each: x, y, width, height, label
    found_masks: list[list[Segmentation]]  # of each image and object, or nothing
    true_masks: list[list[Segmentation]]
    size: (
        tuple[int, int] | None
    )  # of all images, where outputs say what is there and there are masks


def average_precision(
    truth: Any = None,
    *,
    boxes: str = "boxes",
    scores: str = "scores",
    labels: str = "labels",
    images: str = "image_ids",
    true_boxes: str = "true_boxes",
    true_labels: str = "true_labels",
    masks: str = "",
    true_masks: str = "true_masks",
    prefix: str = "",
) -> Metric:
    """COCO's twelve figures of the boxes, and of the masks, that are found on images, those of pycocotools bit for bit.

    truth     pycocotools' COCO, the dict of a COCO file or its path: of its images those count that come. None: what
              is there comes as outputs, too.
    boxes     name of the output [samples, objects, 4]: x1, y1, x2, y2 in pixels of the truth.
    scores    name of the output [samples, objects].
    labels    name of the output [samples, objects], integers: the truth's category ids; -1 or less where an image has
              no more objects.
    images    with `truth`: name of the output [samples] of the images' ids.
    true_boxes, true_labels   without `truth`: names of the outputs [samples, objects, 4] and [samples, objects], as
              boxes and labels; areas are those of the boxes, or of the masks, and none is a crowd.
    masks     not empty: name of the output of masks, which are compared, too. Of each object one of: bool [samples,
              objects, height, width], the pixels of its image, those beyond a smaller image False; floats [samples,
              objects, side, side], a soft mask of its box, pasted as torchvision's `paste_masks_in_image` does and cut
              at 0.5; or integers [samples, objects, runs], COCO's counts, -1 behind the last.
    true_masks   without `truth`: name of the output bool [samples, objects, height, width], the size of all images.
    prefix    of the results' names, where there are several.
    Results   AP, AP50, AP75, APs, APm, APl, AR1, AR10, AR100, ARs, ARm, ARl; -1 where no box is of that size, as
              pycocotools has it. With `masks` the same of these, `mask AP` and so on; what is found goes into a range
              of sizes by the mask's area, as pycocotools has it of results without boxes.
    Errors    ValueError where shapes do not fit, a true box or mask has no area, a mask does not fit its image, or an
              image comes twice or is not in `truth`; those of COCOeval.
    """
    others = (true_boxes, true_labels, true_masks) if truth is None else (images,)
    return _AveragePrecision(truth, boxes, scores, labels, others, masks, prefix)


@dataclass(frozen=True)
class _AveragePrecision(Metric):
    truth: Any
    boxes: str
    scores: str
    labels: str
    others: tuple[str, ...]
    masks: str
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
            ids = labels_of(outputs, self.others[0]).flatten().numpy()
            sizes = [self._sizes.get(int(i), (0, 0)) for i in ids] if self.masks else []
            masks = self._segmentations(outputs, self.masks, (boxes, labels), sizes)
            return Part(ids, found, [], masks, [], None)
        names = self.others
        true_boxes, true_labels = self._pair(outputs, names[0], names[1])
        there = np.concatenate([true_boxes, true_labels[..., None]], 2)
        size = self._common_size(outputs, true_labels.shape)
        sizes = [size] * len(labels) if size else []
        return Part(
            np.empty(0, np.int64),
            found,
            [rows[rows[:, 4] >= 0] for rows in there],
            self._segmentations(outputs, self.masks, (boxes, labels), sizes),
            self._segmentations(outputs, names[2], (true_boxes, true_labels), sizes),
            size,
        )

    @cached_property
    def _sizes(self) -> dict[int, tuple[int, int]]:
        """Height and width of the truth's images, by id."""
        images = chosen_truth(self.truth)["images"]
        return {
            i["id"]: (i["height"], i["width"]) for i in images if {"height", "width"} <= i.keys()
        }

    def _common_size(self, outputs: dict[str, torch.Tensor], shape: Any) -> tuple[int, int] | None:
        if not self.masks:
            return None
        name = self.others[2]
        size = ObjectMasks(outputs, name, torch.Size(shape)).common_size
        if size is None:
            raise ValueError(f"output {name!r}: give bool [samples, objects, height, width]")
        return size

    def _segmentations(
        self,
        outputs: dict[str, torch.Tensor],
        name: str,
        objects: tuple[np.ndarray, np.ndarray],
        sizes: Sequence[tuple[int, int]],
    ) -> list[list[Segmentation]]:
        """Of the objects that are there; nothing where masks are not compared."""
        if not self.masks:
            return []
        boxes, labels = objects
        masks = ObjectMasks(outputs, name, torch.Size(labels.shape))
        return [
            [
                masks.segmentation(i, int(j), boxes[i, j], size)
                for j in np.flatnonzero(labels[i] >= 0)
            ]
            for i, size in enumerate(sizes)
        ]

    def results(self, parts: list[Part]) -> Mapping[str, float]:
        found = [rows for part in parts for rows in part.found]
        if self.truth is None:
            ids = np.arange(len(found))
            masks = [part_masks for part in parts for part_masks in part.true_masks]
            sizes = {part.size for part in parts if part.size}
            if len(sizes) > 1:
                raise ValueError(
                    f"true masks are of images of several sizes, {sorted(sizes)}; give a file"
                )
            there = [rows for part in parts for rows in part.truth]
            truth = _dataset(there, masks, next(iter(sizes), None))
        else:
            ids = np.concatenate([part.image_ids for part in parts])
            truth = self.truth
        rows = _rows(ids, found)
        stats = self._evaluate(truth, ids, rows, "bbox")
        figures = {self.prefix + name: value for name, value in zip(_FIGURES, stats, strict=True)}
        if self.masks:
            masks = [part_masks for part in parts for part_masks in part.found_masks]
            stats = self._evaluate(truth, ids, _mask_results(rows, masks), "segm")
            names = (f"{self.prefix}mask {name}" for name in _FIGURES)
            figures.update(zip(names, stats, strict=True))
        return figures

    def _evaluate(self, truth: Any, ids: np.ndarray, found: Any, kind: str) -> list[float]:
        evaluation = COCOeval(truth, found, kind)
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


def _mask_results(rows: np.ndarray, masks: list[list[Segmentation]]) -> list[dict[str, Any]]:
    """As a results file without boxes, so that areas are those of the masks."""
    return [
        {
            "image_id": int(row[0]),
            "category_id": int(row[6]),
            "segmentation": mask,
            "score": float(row[5]),
        }
        for row, mask in zip(rows, chain.from_iterable(masks), strict=True)
    ]


def _dataset(
    truth: list[np.ndarray], masks: list[list[Segmentation]], size: tuple[int, int] | None
) -> dict[str, Any]:
    """As a COCO file."""
    annotations: list[dict[str, Any]] = []
    for image, rows in enumerate(truth):
        for i, (x, y, width, height, label) in enumerate(rows.tolist()):
            if not (width > 0 and height > 0):
                raise ValueError(
                    f"sample {image} has a true box of label {label:g} without an area, {width:g} x {height:g}; where "
                    "there is no object the label is -1"
                )
            annotation = {
                "id": len(annotations) + 1,
                "image_id": image,
                "category_id": int(label),
                "bbox": [x, y, width, height],
                "area": width * height,
                "iscrowd": 0,
            }
            if size:
                annotation["segmentation"] = masks[image][i]
                annotation["area"] = area_of(masks[image][i])
                if annotation["area"] == 0:
                    raise ValueError(
                        f"sample {image} has a true mask of label {label:g} without an area"
                    )
            annotations.append(annotation)
    categories = sorted({annotation["category_id"] for annotation in annotations})
    sides = {"height": size[0], "width": size[1]} if size else {}
    return {
        "images": [{"id": image} | sides for image in range(len(truth))],
        "categories": [{"id": category, "name": str(category)} for category in categories],
        "annotations": annotations,
    }
