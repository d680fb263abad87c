"""COCO's metrics and masks, judged by pycocotools, and by torchvision for pasted masks."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

import judging

judging.require("numpy", "pycocotools")

import numpy as np  # noqa: E402
from pycocotools import mask as judge_masks  # noqa: E402
from pycocotools.coco import COCO  # noqa: E402
from pycocotools.cocoeval import COCOeval  # noqa: E402

from coco_cases import Item, RandomCase  # noqa: E402

KINDS = {"box": "bbox", "mask": "segm"}


def as_bytes(texts: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(text + b"\n" for text in texts), dtype=np.uint8).copy()


def as_texts(array: np.ndarray) -> list[bytes]:
    return bytes(array).split(b"\n")[:-1]


def judged(truth: Item, results: list[Item], kind: str, limits: list[int]) -> COCOeval:
    """What pycocotools makes of copies of both."""
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = json.loads(json.dumps(truth))
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(json.loads(json.dumps(results))), KINDS[kind])
        evaluation.params.maxDets = limits
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation


def ours(truth: Item, results: list[Item], kind: str, limits: list[int], **more: Any) -> Item:  # noqa: ANN401
    with tempfile.TemporaryDirectory() as folder:
        files = {"annotations": truth, "results": results}
        for name, content in files.items():
            (Path(folder) / name).write_text(json.dumps(content))
        options = {name: str(Path(folder) / name) for name in files}
        tensors = {"limits": np.array(limits, dtype=np.int64), **more}
        return judging.call("coco", tensors, kind=kind, **options)


def categories_first(array: np.ndarray) -> np.ndarray:
    """From T, (R,) K, A, M."""
    if array.ndim == 5:
        return array.transpose(2, 3, 4, 0, 1)
    return array.transpose(1, 2, 3, 0)


class Evaluation(unittest.TestCase):
    def check(
        self,
        truth: Item,
        results: list[Item],
        kind: str,
        limits: list[int] | None = None,
        **more: Any,  # noqa: ANN401
    ) -> Item:
        limits = limits or [1, 10, 100]
        judge = judged(truth, results, kind, limits)
        got = ours(truth, results, kind, limits, **more)
        np.testing.assert_array_equal(
            got["precision"], categories_first(judge.eval["precision"]), strict=True
        )
        np.testing.assert_array_equal(
            got["recall"], categories_first(judge.eval["recall"]), strict=True
        )
        first = 0 if limits[2] == 100 else 1  # pycocotools' AP is -1 there
        np.testing.assert_array_equal(got["stats"][first:], judge.stats[first:], strict=True)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            judge.summarize()
        if first == 0:
            self.assertEqual(bytes(got["table"]).decode(), printed.getvalue())
        return got

    def test_random_cases(self) -> None:
        for kind, count in [("box", 60), ("mask", 30)]:
            for seed in range(count):
                with self.subTest(kind=kind, seed=seed):
                    case = RandomCase(seed, kind)
                    limits = [1, 10, 100] if seed % 3 else [1, 2, 5]
                    self.check(case.truth, case.results, kind, limits)

    def test_results_with_box_and_mask(self) -> None:
        """Their areas are those of the boxes, for masks as well."""
        for seed in range(10):
            case = RandomCase(seed, "mask")
            for result in case.results:
                result["bbox"] = case.box(case.images[0])
            for kind in KINDS:
                self.check(case.truth, case.results, kind)

    def test_masks_of_boxes_and_boxes_of_masks(self) -> None:
        for seed in range(10):
            case = RandomCase(seed, "mask")
            self.check(case.truth, case.results, "box")
            for result in case.results:
                del result["segmentation"]
                result["bbox"] = case.box(case.images[0])
            self.check(case.truth, case.results, "mask")

    def test_rows(self) -> None:
        case = RandomCase(5, "box")
        rows = [[r["image_id"], *r["bbox"], r["score"], r["category_id"]] for r in case.results]
        self.check(case.truth, case.results, "box", rows=np.array(rows, dtype=np.float64))

    def test_category_ap(self) -> None:
        case = RandomCase(11, "box")
        got = self.check(case.truth, case.results, "box")
        for k, ap in enumerate(got["category_ap"]):
            values = got["precision"][k, 0, 2]
            self.assertAlmostEqual(ap, values[values > -1].mean() if values.max() > -1 else -1)

    def test_what_is_refused(self) -> None:
        case = RandomCase(0, "box")
        for name, value, what in [
            ("image_id", 12345, "no image 12345"),
            ("category_id", 12345, "no category 12345"),
            ("score", "high", "score: expected a number"),
            ("bbox", [1, 2, 3], "expected x, y, width and height"),
        ]:
            results = [*case.results, {**case.results[0], name: value}]
            with self.assertRaises(judging.RefusedError) as refused:
                ours(case.truth, results, "box", [1, 10, 100])
            self.assertIn(f"item {len(results) - 1}", str(refused.exception))
            self.assertIn(what, str(refused.exception))


class RealData(unittest.TestCase):
    def check_file(self, truth: Item, results: list[Item], kind: str) -> np.ndarray:
        judge = judged(truth, results, kind, [1, 10, 100])
        got = ours(truth, results, kind, [1, 10, 100])
        np.testing.assert_array_equal(got["precision"], categories_first(judge.eval["precision"]))
        np.testing.assert_array_equal(got["stats"], judge.stats)
        stats: np.ndarray = got["stats"]
        return stats

    def read(self, name: str) -> Any:  # noqa: ANN401
        file = judging.DATA / name
        if not file.exists():
            self.skipTest(f"no {name}")
        return json.loads(file.read_text())

    def test_published_figures(self) -> None:
        truth = self.read("parity-coco-map/instances_val2014_100.json")
        expected = self.read("parity-coco-map/expected.json")
        for kind, judge_kind in KINDS.items():
            results = self.read(f"parity-coco-map/results_fake{judge_kind}100.json")
            stats = self.check_file(truth, results, kind)
            np.testing.assert_allclose(stats, list(expected[judge_kind].values()), atol=1e-12)

    def test_annotations_of_real_images(self) -> None:
        """Detections are made from the annotations: shifted, doubled, some left out."""
        random = np.random.default_rng(2)
        for name, kinds in [
            ("det-coco-permissive/instances_val.json", ["box", "mask"]),
            ("det-bccd/instances_val.json", ["box"]),
            ("seg-dsb2018-nuclei/instances_val.json", ["box", "mask"]),
        ]:
            truth = self.read(name)
            sizes = {image["id"]: image for image in truth["images"]}
            results = []
            for annotation in truth["annotations"]:
                for _ in range(random.integers(3)):
                    result = {key: annotation[key] for key in ("image_id", "category_id")}
                    result["score"] = round(float(random.random()), 2)
                    box = np.array(annotation["bbox"]) + random.normal(scale=3, size=4)
                    result["bbox"] = [float(v) for v in np.maximum(box, 0)]
                    if "mask" in kinds:
                        image = sizes[annotation["image_id"]]
                        result["segmentation"] = self.detected(annotation, image, random)
                        if random.random() < 0.5:
                            del result["segmentation"]  # then that of its box
                    results.append(result)
            for kind in kinds:
                with self.subTest(name=name, kind=kind):
                    self.check_file(truth, results, kind)

    def detected(self, annotation: Item, image: Item, random: np.random.Generator) -> Item:
        """The annotation's mask, shifted."""
        shape, size = annotation["segmentation"], (image["height"], image["width"])
        if isinstance(shape, list):
            rle = judge_masks.merge(judge_masks.frPyObjects(shape, *size))
        else:
            is_plain = isinstance(shape["counts"], list)
            rle = judge_masks.frPyObjects(shape, *size) if is_plain else shape
        pixels = np.roll(judge_masks.decode(rle), random.integers(-3, 4, size=2), axis=(0, 1))
        rle = judge_masks.encode(np.asfortranarray(pixels))
        return {"size": list(size), "counts": rle["counts"].decode()}


class Masks(unittest.TestCase):
    def random_polygons(self, random: np.random.Generator, count: int) -> list[Any]:
        polygons = []
        for i in range(count):
            height, width = (int(v) for v in random.integers(1, [3, 90][i % 2], size=2))
            points = int(random.integers(3, 12))
            xy = random.uniform(-0.3, 1.3, size=(points, 2)) * [width, height]
            grid = [0.1, 0.5, 1.0, 1e-9][i % 4]
            xy = np.round(xy / grid) * grid
            if i % 5 == 0:
                xy[1] = xy[0]
            polygons.append(((height, width), xy.ravel()))
        return polygons

    def test_polygons_and_boxes(self) -> None:
        random = np.random.default_rng(3)
        polygons = self.random_polygons(random, 4000)
        boxes = random.uniform(-5, 95, size=(len(polygons), 4))
        boxes[::2] = boxes[::2].round(1)
        got = judging.call(
            "coco_shapes",
            {
                "sizes": np.array([size for size, _ in polygons], dtype=np.int64),
                "lengths": np.array([len(xy) for _, xy in polygons], dtype=np.int64),
                "xy": np.concatenate([xy for _, xy in polygons]),
                "boxes": boxes,
            },
        )
        for i, text in enumerate(as_texts(got["polygons"])):
            size, xy = polygons[i]
            self.assertEqual(text, judge_masks.frPyObjects([xy.tolist()], *size)[0]["counts"], i)
        for i, text in enumerate(as_texts(got["boxes"])):
            size, _ = polygons[i]
            self.assertEqual(text, judge_masks.frPyObjects(boxes[i : i + 1], *size)[0]["counts"], i)

    def random_masks(self, random: np.random.Generator) -> list[Item]:
        masks = []
        for density in [0.0, 0.02, 0.5, 0.9, 1.0, 0.3, 0.7]:
            pixels = random.random(size=(37, 23)) < density
            if density in (0.3, 0.7):
                pixels[5:30, 4:9] = True
                pixels[:, 20:] = False
            masks.append(judge_masks.encode(np.asfortranarray(pixels.astype(np.uint8))))
        return masks

    def test_operations(self) -> None:
        random = np.random.default_rng(4)
        for _ in range(5):
            a, b = self.random_masks(random), self.random_masks(random)
            is_crowd = random.integers(2, size=len(b)).astype(np.uint8)
            a = [a[i] for i in random.permutation(len(a))[: random.integers(1, 5)]]
            tensors = {"is_crowd": is_crowd}
            for name, masks in [("a", a), ("b", b)]:
                tensors[name] = as_bytes([mask["counts"] for mask in masks])
                tensors[f"{name}_sizes"] = np.array([m["size"] for m in masks], dtype=np.int64)
            got = judging.call("coco_masks", tensors)
            np.testing.assert_array_equal(got["areas"], judge_masks.area(a))
            np.testing.assert_array_equal(got["boxes"], judge_masks.toBbox(a))
            np.testing.assert_array_equal(got["iou"], judge_masks.iou(a, b, is_crowd.tolist()))
            self.assertEqual(as_texts(got["again"]), [mask["counts"] for mask in a])
            self.assertEqual(as_texts(got["union"]), [judge_masks.merge(a)["counts"]])
            both = judge_masks.merge(a, intersect=True)
            self.assertEqual(as_texts(got["intersection"]), [both["counts"]])

    def test_malformed(self) -> None:
        for text, what in [
            (b"1", "sum to the"),
            (b"\x7f", "byte 127"),
            (b"o", "end within"),
            (b"O", "negative"),
            (b"oooooooooooooo", "characters"),
            (b"oo0", "beyond"),
        ]:
            tensors = {
                "a": as_bytes([text]),
                "a_sizes": np.array([[3, 3]]),
                "b": as_bytes([b"9"]),
                "b_sizes": np.array([[3, 3]]),
                "is_crowd": np.zeros(1, dtype=np.uint8),
            }
            with self.assertRaises(judging.RefusedError) as refused:
                judging.call("coco_masks", tensors)
            self.assertIn(what, str(refused.exception))

    def test_pasted(self) -> None:
        try:
            import torch
            from torchvision.models.detection.roi_heads import paste_masks_in_image
        except ImportError as error:
            self.skipTest(f"torchvision is not installed ({error})")
        random = np.random.default_rng(6)
        height, width = 90, 120
        for side in [1, 7, 28]:
            count = 40
            masks = random.random(size=(count, side, side)).astype(np.float32)
            masks[::2] = masks[::2] > 0.3
            corner = random.uniform(-20, [width - 5, height - 5], size=(count, 2))
            extent = random.uniform(0.5, 80, size=(count, 2))
            boxes = np.concatenate([corner, corner + extent], axis=1).astype(np.float32)
            boxes[:, 2:] = np.maximum(boxes[:, 2:], 2)  # the judge wants some of it in the image
            got = judging.call(
                "coco_paste",
                {"masks": masks, "boxes": boxes, "image": np.array([height, width])},
            )
            judge = paste_masks_in_image(
                torch.from_numpy(masks)[:, None], torch.from_numpy(boxes), (height, width)
            )[:, 0].numpy()
            for text, values in zip(as_texts(got["pasted"]), judge, strict=True):
                pixels = judge_masks.decode({"size": [height, width], "counts": text})
                differs = pixels.astype(bool) != (values > 0.5)
                self.assertLessEqual(np.abs(values[differs] - 0.5).max(initial=0), 1e-6)


if __name__ == "__main__":
    judging.main()
