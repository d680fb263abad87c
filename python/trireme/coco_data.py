"""What COCOeval is given, as the engine reads it: COCO objects, dicts and paths -> JSON or rows."""

import json
import os
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

_ALL = 1
"""The category that stands for all where they are not told apart."""


class Truth(dict[str, Any]):
    """Images, categories and annotations."""

    def as_json(self) -> str:
        return json.dumps(self, default=_plain)


def chosen_truth(
    given: Any,
    image_ids: Sequence[int] | None = None,
    category_ids: Sequence[int] | None = None,
    tells_categories: bool = True,
    has_masks: bool = True,
) -> Truth:
    """Of a COCO object, the dict of a file or its path, what these ids choose; None: all."""
    dataset = given if isinstance(given, dict) else _read(getattr(given, "dataset", given))
    if not isinstance(dataset, dict) or not {"images", "categories"} <= dataset.keys():
        raise TypeError(
            f"the ground truth is a {type(given).__name__}; give pycocotools' COCO, the dict of a file with "
            "images, categories and annotations, or its path"
        )
    if image_ids is None or category_ids is None:
        return Truth(dataset)
    images, ranks = set(image_ids), {k: i for i, k in enumerate(category_ids)}
    names = ["id", "image_id", "category_id", "bbox", "area", "iscrowd"]
    if has_masks:
        names.append("segmentation")
    annotations = [
        {name: item[name] for name in names if name in item}
        for item in dataset.get("annotations", [])
        if item["image_id"] in images and item["category_id"] in ranks
    ]
    categories = [item for item in dataset["categories"] if item["id"] in ranks]
    if not tells_categories:
        annotations = _as_one_category(annotations, ranks)
        categories = [{"id": _ALL, "name": "all"}]
    sizes = [
        {name: item[name] for name in ("id", "height", "width") if name in item}
        for item in dataset["images"]
        if item["id"] in images
    ]
    return Truth(images=sizes, categories=categories, annotations=annotations)


def chosen_results(
    given: Any,
    image_ids: Sequence[int],
    category_ids: Sequence[int],
    tells_categories: bool,
    has_masks: bool,
) -> str | np.ndarray:
    """Of a COCO object, a list, a path or rows: rows f64 [n, 7] where boxes are all that counts, else JSON."""
    if isinstance(given, np.ndarray):
        return _chosen_rows(given, image_ids, category_ids, tells_categories, has_masks)
    dataset = getattr(given, "dataset", None)
    items = dataset["annotations"] if dataset is not None else _read(given)
    if not isinstance(items, (list, tuple)):
        raise TypeError(
            f"detections are a {type(given).__name__}; give a list of dicts, its path, an array [n, 7] or "
            "pycocotools' COCO of loadRes"
        )
    is_loaded = dataset is not None
    rows = None if has_masks else _rows_of(items, is_loaded)
    if rows is not None:
        return _chosen_rows(rows, image_ids, category_ids, tells_categories, has_masks)
    if is_loaded:
        items = _as_found(items)
    images, ranks = set(image_ids), {k: i for i, k in enumerate(category_ids)}
    items = [d for d in items if d["image_id"] in images and d["category_id"] in ranks]
    if not tells_categories:
        items = _as_one_category(items, ranks)
    return json.dumps(items, default=_plain)


def _rows_of(items: Sequence[Any], is_loaded: bool) -> np.ndarray | None:
    """[n, 7] where each has a box, which is all that counts; of loaded ones those whose areas are the boxes'."""
    count = len(items)

    def column(name: str) -> np.ndarray:
        return np.fromiter((item[name] for item in items), np.float64, count)

    try:
        corners = chain.from_iterable(item["bbox"] for item in items)
        boxes = np.fromiter(corners, np.float64).reshape(count, 4)
        if is_loaded and np.any(boxes[:, 2] * boxes[:, 3] != column("area")):
            return None
        return np.column_stack([column("image_id"), boxes, column("score"), column("category_id")])
    except (KeyError, TypeError, ValueError):
        return None  # what is wrong is said where they are read one by one


def _chosen_rows(
    rows: np.ndarray,
    image_ids: Sequence[int],
    category_ids: Sequence[int],
    tells_categories: bool,
    has_masks: bool,
) -> np.ndarray:
    if rows.ndim != 2 or rows.shape[1] != 7 or has_masks:
        raise ValueError(
            f"detections of shape {list(rows.shape)}; boxes are [n, 7]: image id, x, y, width, height, score, "
            "category id; for masks give a list of dicts with segmentation"
        )
    is_chosen = np.isin(rows[:, 0], image_ids) & np.isin(rows[:, 6], category_ids)
    rows = rows if is_chosen.all() else rows[is_chosen]
    if tells_categories:
        return rows
    rows = rows[np.argsort(rows[:, 6], kind="stable")].copy()
    rows[:, 6] = _ALL
    return rows


def _as_one_category(items: list[Any], ranks: dict[int, int]) -> list[Any]:
    """In the order of their categories, in which pycocotools strings them together."""
    ordered = sorted(items, key=lambda item: ranks[item["category_id"]])
    return [{**item, "category_id": _ALL} for item in ordered]


def _as_found(items: Sequence[Any]) -> list[Any]:
    """Results as they were before `loadRes`: it gives those of masks boxes, and those of boxes masks, and says by
    `area` which they were."""
    boxes = np.array([item["bbox"] for item in items], dtype=np.float64).reshape(-1, 4)
    areas = np.array([item["area"] for item in items], dtype=np.float64)
    names = ["image_id", "category_id", "score", "segmentation"]
    if np.all(boxes[:, 2] * boxes[:, 3] == areas):
        names.append("bbox")
    return [{name: item[name] for name in names if name in item} for item in items]


def _read(given: Any) -> Any:
    if not isinstance(given, (str, os.PathLike)):
        return given
    with open(given, encoding="utf-8") as file:
        return json.load(file)


def _plain(value: Any) -> Any:
    """What JSON has no words for: compressed runs as bytes, numbers and arrays of numpy."""
    if isinstance(value, bytes):
        return value.decode("ascii")
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} is nothing that COCO's files hold")
