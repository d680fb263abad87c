"""Boxes and regions beside torchvision, COCO's metrics beside pycocotools."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from trireme.errors import Error
from trireme.vision import COCOeval, RoIAlign, batched_nms, fixed_nms, nms, roi_align

torchvision = pytest.importorskip(
    "torchvision", reason="torchvision is not installed; ./dev test installs it"
)


def some_boxes(count: int, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    corners = torch.rand((count, 2), generator=generator) * 50
    sides = torch.rand((count, 2), generator=generator) * 20
    scores = (torch.rand((count,), generator=generator) * 100).round() / 100
    return torch.cat([corners, corners + sides], 1), scores


@pytest.mark.parametrize("count", [0, 1, 17, 1000])
def test_kept_boxes_are_those_of_torchvision(count: int) -> None:
    boxes, scores = some_boxes(count)
    for threshold in (0.1, 0.5):
        expected = torchvision.ops.nms(boxes, scores, threshold)
        assert torch.equal(nms(boxes, scores, threshold), expected)


def test_classes_do_not_suppress_each_other() -> None:
    boxes, scores = some_boxes(500)
    classes = torch.arange(500) % 7
    kept = batched_nms(boxes, scores, classes, 0.4)
    expected = []
    for number in range(7):
        own = torch.nonzero(classes == number).flatten()
        expected.append(own[torchvision.ops.nms(boxes[own], scores[own], 0.4)])
    assert sorted(kept.tolist()) == sorted(torch.cat(expected).tolist())
    assert torch.all(scores[kept].diff() <= 0)
    places, counts = fixed_nms(boxes[None], scores[None], classes[None], 0.4, 500)
    assert torch.equal(places[0, : counts[0]], kept)


def test_what_boxes_are_refused() -> None:
    boxes, scores = some_boxes(5)
    with pytest.raises(RuntimeError, match="trireme::nms: boxes must be of type Float, is Double"):
        nms(boxes.double(), scores, 0.5)
    with pytest.raises(RuntimeError, match=r"boxes must have shape \[4, 4\], has \[5, 4\]"):
        nms(boxes, scores[:4], 0.5)
    boxes[3, 1] = float("nan")
    with pytest.raises(RuntimeError, match="box 3"):
        nms(boxes, scores, 0.5)


@pytest.mark.parametrize("sampling_ratio", [-1, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_pooled_regions_are_those_of_torchvision(sampling_ratio: int, aligned: bool) -> None:
    boxes, _ = some_boxes(9)
    given = [boxes[:4], boxes[4:]]
    features = torch.randn((2, 5, 30, 40), generator=torch.Generator().manual_seed(2))
    results = []
    for module in (RoIAlign, torchvision.ops.RoIAlign):
        input = features.clone().requires_grad_()  # noqa: A001
        pooled = module((3, 4), 0.5, sampling_ratio, aligned)(input, given)
        (pooled * torch.linspace(0, 1, pooled.numel()).view(pooled.shape)).sum().backward()
        results.append((pooled.detach(), input.grad))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_what_regions_are_refused() -> None:
    features = torch.randn(2, 3, 8, 9)
    with pytest.raises(RuntimeError, match=r"regions must have shape \[3, 5\], has \[3, 4\]"):
        roi_align(features, torch.zeros(3, 4), 7)
    with pytest.raises(ValueError, match=r"boxes\[1\] has shape \[5\]; give \[boxes, 4\]"):
        roi_align(features, [torch.zeros(2, 4), torch.zeros(5)], 7)
    with pytest.raises(RuntimeError, match="requires a gradient, but has none here"):
        roi_align(features, torch.zeros(1, 5, requires_grad=True), 7)


# ---- COCO


def random_truth(random: np.random.Generator) -> dict[str, Any]:
    images = [{"id": int(i), "height": 90, "width": 120} for i in random.permutation(40)[:6]]
    annotations = []
    for number in range(60):
        x, y = random.uniform(0, 60, 2)
        w, h = random.choice([10, 40, 100]) * random.uniform(0.1, 1, 2)
        annotations.append(
            {
                "id": number + 1,
                "image_id": images[number % 6]["id"],
                "category_id": int(random.choice([3, 1, 7])),
                "bbox": [round(x), round(y), round(w) + 1, round(h) + 1],
                "area": float(w * h),
                "iscrowd": int(random.random() < 0.1),
                "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]],
            }
        )
    categories = [{"id": k, "name": f"c{k}"} for k in (3, 1, 7, 9)]
    return {"images": images, "categories": categories, "annotations": annotations}


def detected(random: np.random.Generator, truth: dict[str, Any]) -> list[dict[str, Any]]:
    results = []
    for annotation in truth["annotations"]:
        for _ in range(random.integers(4)):
            box = np.array(annotation["bbox"]) + random.normal(scale=2, size=4)
            result = {key: annotation[key] for key in ("image_id", "category_id")}
            result["bbox"] = [float(v) for v in np.maximum(box, 0)]
            results.append(result | {"score": round(float(random.random()), 1)})
    return results


def as_masks(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from pycocotools import mask

    masks = []
    for result in results:
        x, y, w, h = result["bbox"]
        runs = mask.frPyObjects([[x, y, x + w, y, x, y + h]], 90, 120)[0]
        kept = {key: result[key] for key in ("image_id", "category_id", "score")}
        masks.append(kept | {"segmentation": {**runs, "counts": runs["counts"].decode()}})
    return masks


def judge_of(truth: dict[str, Any], results: list[dict[str, Any]]) -> tuple[Any, Any]:
    """pycocotools' objects."""
    coco = pytest.importorskip(
        "pycocotools.coco", reason="pycocotools is not installed; ./dev test --judges installs it"
    )
    with contextlib.redirect_stdout(io.StringIO()):
        ground_truth = coco.COCO()
        ground_truth.dataset = json.loads(json.dumps(truth))
        ground_truth.createIndex()
        return ground_truth, ground_truth.loadRes(json.loads(json.dumps(results)))


def summarized(evaluation: Any, changes: dict[str, Any]) -> tuple[Any, str]:
    for name, value in changes.items():
        setattr(evaluation.params, name, value)
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.evaluate()
        evaluation.accumulate()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        evaluation.summarize()
    return evaluation, printed.getvalue()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["bbox", "segm"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"useCats": 0},
        {"catIds": [7, 3], "iouThrs": np.array([0.5, 0.75]), "recThrs": np.linspace(0, 1, 11)},
        {"areaRng": [[0, 1e10], [1024, 9216]], "areaRngLbl": ["all", "medium"]},
    ],
)
def test_coco_is_pycocotools(seed: int, kind: str, changes: dict[str, Any]) -> None:
    random = np.random.default_rng(seed)
    truth = random_truth(random)
    results = detected(random, truth)
    if kind == "segm":
        pytest.importorskip("pycocotools", reason="pycocotools is not installed")
        results = as_masks(results)
    ground_truth, detections = judge_of(truth, results)
    if seed == 2:
        changes = changes | {"imgIds": sorted(ground_truth.getImgIds())[1:4]}
    from pycocotools.cocoeval import COCOeval as Judge

    judge, table = summarized(Judge(ground_truth, detections, kind), changes)
    for coco, found in ((ground_truth, detections), (truth, results)):
        ours, printed = summarized(COCOeval(coco, found, kind), changes)
        np.testing.assert_array_equal(ours.eval["precision"], judge.eval["precision"], strict=True)
        np.testing.assert_array_equal(ours.eval["recall"], judge.eval["recall"], strict=True)
        assert ours.eval["counts"] == judge.eval["counts"]
        np.testing.assert_array_equal(ours.stats, judge.stats)
        assert printed == table


def test_coco_takes_rows_and_files(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    truth = random_truth(random)
    results = detected(random, truth)
    rows = np.array([[r["image_id"], *r["bbox"], r["score"], r["category_id"]] for r in results])
    for name, content in (("truth", truth), ("results", results)):
        (tmp_path / name).write_text(json.dumps(content))
    expected, table = summarized(COCOeval(truth, results, "bbox"), {"maxDets": [5, 20]})
    given: Any
    for given in ((truth, rows), (tmp_path / "truth", str(tmp_path / "results"))):
        ours, printed = summarized(COCOeval(given[0], given[1], "bbox"), {"maxDets": [5, 20]})
        np.testing.assert_array_equal(ours.eval["precision"], expected.eval["precision"])
        assert printed == table
    assert expected.eval["precision"].shape == (10, 101, 4, 4, 2)


def test_what_coco_refuses() -> None:
    truth = random_truth(np.random.default_rng(1))
    results = detected(np.random.default_rng(1), truth)
    with pytest.raises(ValueError, match="iouType is 'bbox' or 'segm', and is 'keypoints'"):
        COCOeval(truth, results, "keypoints")
    with pytest.raises(TypeError, match="the ground truth is a list; give pycocotools' COCO"):
        COCOeval(results, results, "bbox")
    with pytest.raises(ValueError, match="iouThrs has 0.52; it may have any of 0.5, 0.55, .. 0.95"):
        summarized(COCOeval(truth, results, "bbox"), {"iouThrs": [0.52]})
    with pytest.raises(RuntimeError, match=r"call evaluate\(\) first"):
        COCOeval(truth, results, "bbox").accumulate()
    with pytest.raises(Error, match="detections item 0.score: expected a number"):
        summarized(COCOeval(truth, [{**results[0], "score": "x"}], "segm"), {})
