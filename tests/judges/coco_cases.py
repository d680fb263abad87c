"""Random cases for the judge of COCO's metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
from pycocotools import mask as judge_masks

Item = dict[str, Any]


class RandomCase:
    """A small data set with everything in it that a rule is about."""

    def __init__(self, seed: int, kind: str) -> None:
        self.random = np.random.default_rng(seed)
        self.kind = kind
        self.ids = [int(i) for i in self.random.permutation(60)[: self.random.integers(1, 9)]]
        self.categories = [3, 1, 7, 20][: self.random.integers(1, 5)]
        self.crowd = self.random.choice([0.0, 0.3])
        self.images = [
            {
                "id": i,
                "height": int(self.random.integers(20, 180)),
                "width": int(self.random.integers(20, 180)),
            }
            for i in self.ids
        ]
        self.annotations: list[Item] = []
        self.results: list[Item] = []
        for image in self.images:
            for _ in range(self.random.choice([0, 1, 3, 8])):
                self.add_annotation(image)
            for _ in range(self.random.choice([0, 2, 10, 130], p=[0.2, 0.3, 0.4, 0.1])):
                self.add_result(image)
        if not self.results:
            self.add_result(self.images[0])
        self.random.shuffle(self.results)

    @property
    def truth(self) -> Item:
        return {
            "images": self.images,
            "categories": [{"id": i, "name": f"c{i}"} for i in self.categories],
            "annotations": self.annotations,
        }

    def box(self, image: Item) -> list[float]:
        x, y = self.random.uniform(-5, [image["width"], image["height"]])
        w, h = self.random.choice([8, 30, 60, 120]) * self.random.uniform(0.1, 1.2, size=2)
        if self.random.random() < 0.05:
            w = 0.0
        if self.random.random() < 0.5:  # whole numbers, so that overlaps tie and meet thresholds
            return [float(round(v)) for v in (x, y, w, h)]
        return [float(v) for v in (x, y, w, h)]

    def shape(self, image: Item, box: list[float]) -> Any:  # noqa: ANN401
        """A polygon or two, compressed or plain runs."""
        x, y, w, h = box
        polygons = []
        for _ in range(self.random.integers(1, 3)):
            turns = np.sort(self.random.uniform(0, 2 * np.pi, size=self.random.integers(5, 20)))
            points = np.stack([x + w / 2 * (1 + np.cos(turns)), y + h / 2 * (1 + np.sin(turns))])
            polygons.append([float(v) for v in points.T.ravel()])
        form = self.random.integers(3)
        if form == 0:
            return polygons
        height, width = image["height"], image["width"]
        rle = judge_masks.merge(judge_masks.frPyObjects(polygons, height, width))
        if form == 1:
            return {"size": [height, width], "counts": rle["counts"].decode()}
        pixels = judge_masks.decode(rle).ravel(order="F")
        edges = np.flatnonzero(np.diff(np.concatenate([[0], pixels, [1 - pixels[-1]]])))
        return {"size": [height, width], "counts": np.diff(edges, prepend=0).tolist()}

    def add_annotation(self, image: Item) -> None:
        box = self.box(image)
        number = len(self.annotations) + int(self.random.integers(2) * 1000)
        item: Item = {
            "id": number * 2 + len(self.annotations) % 2 if self.annotations else 0,
            "image_id": image["id"],
            "category_id": int(self.random.choice([*self.categories, 99])),
            "bbox": box,
            "area": box[2] * box[3] * float(self.random.choice([0.6, 1.0])),
            "iscrowd": int(self.random.random() < self.crowd),
        }
        if self.random.random() < 0.1:
            item["ignore"] = 1
        if self.random.random() < 0.1:
            item["area"] = float(self.random.choice([32**2, 96**2]))
        if self.kind == "mask":
            item["segmentation"] = self.shape(image, box)
        self.annotations.append(item)

    def add_result(self, image: Item) -> None:
        near = [a for a in self.annotations if a["image_id"] == image["id"]]
        category = int(self.random.choice(self.categories))
        box = self.box(image)
        if near and self.random.random() < 0.7:
            target = near[self.random.integers(len(near))]
            shift = self.random.choice([0, 1, 4]) * self.random.normal(size=4)
            box = [float(v) for v in np.abs(np.array(target["bbox"]) + shift)]
            if target["category_id"] != 99:
                category = target["category_id"]
        score = round(float(self.random.random()), int(self.random.choice([1, 2, 9])))
        item: Item = {"image_id": image["id"], "category_id": category, "score": score}
        if self.kind == "box":
            item["bbox"] = box
        else:
            height, width = image["height"], image["width"]
            shape = self.shape(image, box)
            if isinstance(shape, list):
                rle = judge_masks.merge(judge_masks.frPyObjects(shape, height, width))
                shape = {"size": [height, width], "counts": rle["counts"].decode()}
            elif isinstance(shape["counts"], list):
                rle = judge_masks.frPyObjects(shape, height, width)
                shape = {"size": [height, width], "counts": rle["counts"].decode()}
            item["segmentation"] = shape
        self.results.append(item)
