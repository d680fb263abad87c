"""COCO's average precision and recall, with the interface of pycocotools' COCOeval and its figures, bit for bit.

    evaluation = trireme.vision.COCOeval(coco_gt, coco_dt, "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    print(evaluation.stats[0])  # AP

What differs: `evaluate` computes all at once (`evalImgs` stays empty), `eval` has no "scores", there are no keypoints,
and thresholds and ranges of area are COCO's or some of them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trireme.coco_data import chosen_results, chosen_truth

_AREAS = {
    (0.0, 1e10): 0,
    (0.0, 1024.0): 1,
    (1024.0, 9216.0): 2,
    (9216.0, 1e10): 3,
}


class Params:
    """What is evaluated; change it before `evaluate`. Names and defaults are pycocotools'."""

    def __init__(self, iouType: str = "segm") -> None:  # noqa: N803
        if iouType not in ("bbox", "segm"):
            raise ValueError(f"iouType is 'bbox' or 'segm', and is {iouType!r}")
        self.iouType = iouType
        self.imgIds: list[int] = []
        self.catIds: list[int] = []
        self.iouThrs = np.linspace(0.5, 0.95, 10)
        """All of these, or some."""
        self.recThrs = np.linspace(0.0, 1.0, 101)
        """All of these, or some."""
        self.maxDets = [1, 10, 100]
        """1 to 3 limits of detections of an image and category, ascending."""
        self.areaRng: list[Sequence[float]] = [list(area) for area in _AREAS]
        """All of these, or some."""
        self.areaRngLbl = ["all", "small", "medium", "large"]
        self.useCats: int | bool = 1
        """0: all categories as one."""


class COCOeval:
    """Evaluates detections.

    cocoGt   pycocotools' COCO, or the dict of such a file (`images`, `categories`, `annotations`), or its path.
    cocoDt   pycocotools' COCO of `loadRes`; or a list of dicts with `image_id`, `category_id`, `score` and `bbox` or
             `segmentation`, or its path; or for boxes an array f64 [n, 7]: image id, x, y, width, height, score,
             category id.
    Errors   trireme.Error naming the item that is malformed, or its image or category that is unknown; ValueError
             for parameters that are not here.
    Cost     n log n in detections; on torch's threads, which change no bit.
    """

    def __init__(self, cocoGt: Any, cocoDt: Any, iouType: str = "segm") -> None:  # noqa: N803
        self.cocoGt = cocoGt
        self.cocoDt = cocoDt
        self.params = Params(iouType)
        truth = chosen_truth(cocoGt)
        self.params.imgIds = sorted({image["id"] for image in truth["images"]})
        self.params.catIds = sorted({category["id"] for category in truth["categories"]})
        self.evalImgs: list[Any] = []
        self.eval: dict[str, Any] = {}
        self.stats: Any = []
        self._truth = truth
        self._made: tuple[Any, Any] | None = None

    def evaluate(self) -> None:
        """Reads what `params` choose, and computes precision and recall."""
        from trireme import _packs

        p = self.params
        p.imgIds, p.catIds = list(np.unique(p.imgIds)), list(np.unique(p.catIds))
        max_dets = sorted(p.maxDets)
        _Places(p)  # what is not here is said before anything runs
        of_masks = p.iouType == "segm"
        truth = chosen_truth(self._truth, p.imgIds, p.catIds, bool(p.useCats), of_masks)
        ground_truth = _packs.CocoGroundTruth(truth.as_json(), of_masks, "ground truth")
        results = chosen_results(self.cocoDt, p.imgIds, p.catIds, bool(p.useCats), of_masks)
        if isinstance(results, str):
            detections = _packs.CocoDetections(results, of_masks, ground_truth, "detections")
        else:
            detections = _packs.CocoDetections.of_rows(results, ground_truth)
        self._made = _packs.evaluate_coco(ground_truth, detections, of_masks, _three(max_dets))
        p.maxDets = max_dets

    def accumulate(self, p: Params | None = None) -> None:
        """Fills `eval`: "precision" [T, R, K, A, M], "recall" [T, K, A, M], "counts", "params"; -1 where there is no
        annotation."""
        if self._made is None:
            raise RuntimeError("there is nothing to accumulate; call evaluate() first")
        p = p or self.params
        places = _Places(p)
        precision, recall = self._made  # [K, A, M, T, R] and [K, A, M, T]
        precision = precision[:, places.areas][:, :, places.limits][:, :, :, places.ious]
        precision = precision[..., places.recalls].transpose(3, 4, 0, 1, 2)
        recall = recall[:, places.areas][:, :, places.limits][:, :, :, places.ious]
        self.eval = {
            "params": p,
            "counts": list(precision.shape),
            "precision": np.ascontiguousarray(precision),
            "recall": np.ascontiguousarray(recall.transpose(3, 0, 1, 2)),
        }

    def summarize(self) -> None:
        """Prints the twelve lines and sets `stats`: AP, AP at 0.50, at 0.75, of small, medium, large; AR at each limit
        of detections, of small, medium, large. AP is that at the largest limit, 100 or not."""
        if not self.eval:
            raise RuntimeError("there is nothing to summarize; call accumulate() first")
        limits = self.params.maxDets
        last = limits[-1]
        rows = [(True, None, "all"), (True, 0.5, "all"), (True, 0.75, "all")]
        areas: tuple[str, ...] = ("small", "medium", "large")
        figures = [self._figure(*row, last) for row in rows]
        figures += [self._figure(True, None, area, last) for area in areas]
        figures += [self._figure(False, None, "all", limit) for limit in (*limits, last, last)[:3]]
        figures += [self._figure(False, None, area, last) for area in areas]
        self.stats = np.array(figures)

    def _figure(self, of_precision: bool, iou: float | None, area: str, limit: int) -> float:
        """One line's mean over what is not -1."""
        p = self.params
        values = self.eval["precision" if of_precision else "recall"]
        if iou is not None:
            values = values[np.flatnonzero(np.isclose(p.iouThrs, iou, rtol=0, atol=1e-9))]
        at = [i for i, label in enumerate(p.areaRngLbl) if label == area]
        values = values[..., at, :][..., [i for i, m in enumerate(p.maxDets) if m == limit]]
        values = values[values > -1]
        mean = float(np.mean(values)) if len(values) else -1.0
        ious = f"{p.iouThrs[0]:0.2f}:{p.iouThrs[-1]:0.2f}" if iou is None else f"{iou:0.2f}"
        title, kind = ("Average Precision", "(AP)") if of_precision else ("Average Recall", "(AR)")
        print(
            f" {title:<18} {kind} @[ IoU={ious:<9} | area={area:>6s} | maxDets={limit:>3d} ] = {mean:0.3f}"
        )
        return mean


class _Places:
    """Where parameters are among those that are computed. ValueError where one is not."""

    def __init__(self, p: Params) -> None:
        self.ious = _places_in("iouThrs", p.iouThrs, np.linspace(0.5, 0.95, 10))
        self.recalls = _places_in("recThrs", p.recThrs, np.linspace(0.0, 1.0, 101))
        self.limits = list(range(len(p.maxDets)))
        if not 1 <= len(set(p.maxDets)) == len(p.maxDets) <= 3:
            raise ValueError(f"maxDets are 1 to 3 different limits, and are {p.maxDets!r}")
        self.areas = []
        for low, high in p.areaRng:
            if (float(low), float(high)) not in _AREAS:
                raise ValueError(
                    f"areaRng has [{low}, {high}]; there are {', '.join(str(list(a)) for a in _AREAS)}"
                )
            self.areas.append(_AREAS[float(low), float(high)])


def _places_in(name: str, chosen: Any, known: Any) -> list[int]:
    places = []
    for value in np.atleast_1d(chosen):
        near = np.flatnonzero(np.isclose(known, value, rtol=0, atol=1e-9))
        if not len(near):
            raise ValueError(
                f"{name} has {value}; it may have any of {known[0]:g}, {known[1]:g}, .. {known[-1]:g}"
            )
        places.append(int(near[0]))
    return places


def _three(limits: Sequence[int]) -> tuple[int, int, int]:
    """Three ascending limits that begin with these: the others change nothing of them."""
    first, second, third = [*limits, *(limits[-1] + 1 + i for i in range(3))][:3]
    return first, second, third
