"""Metrics of trireme.metrics beside the libraries that people take them from."""

import contextlib
import io
import warnings
from typing import Any

import numpy as np
import pytest
import torch

from metric_values_test import bytes_of, measured
from trireme.metrics import (
    accuracy,
    average_precision,
    dice,
    log_loss,
    perplexity,
    roc_auc,
    top_k_accuracy,
    word_error_rate,
)
from vision_test import as_masks, detected, random_truth


def judge(module: str) -> Any:
    return pytest.importorskip(
        module, reason=f"{module} is not installed; ./dev test --judges installs it"
    )


def some_scores(count: int, num_classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(count)
    labels = torch.randint(num_classes, (count,), generator=generator)
    scores = torch.randn(count, num_classes, generator=generator, dtype=torch.float64)
    scores[torch.arange(count), labels] += 1
    return scores, labels


@pytest.mark.filterwarnings("ignore:The y_prob values do not sum to one")  # to f64's precision
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_classes_are_those_of_sklearn(dtype: torch.dtype) -> None:
    metrics = judge("sklearn.metrics")
    scores, labels = some_scores(1000, 7)
    scores = scores.to(dtype)
    expected = metrics.accuracy_score(labels, scores.argmax(1))
    assert measured(accuracy(), scores=scores, labels=labels) == {"accuracy": expected}
    for k in (2, 5):
        expected = metrics.top_k_accuracy_score(labels, scores, k=k)
        found = measured(top_k_accuracy(k, name="found"), scores=scores, labels=labels)
        assert found == {"found": expected}
    probabilities = scores.softmax(1)
    expected = metrics.log_loss(labels, probabilities)
    found = measured(log_loss(), probabilities=probabilities, labels=labels)
    assert found["log_loss"] == pytest.approx(
        expected, rel=1e-14 if dtype == torch.float64 else 1e-6
    )


def test_two_classes_are_those_of_sklearn() -> None:
    metrics = judge("sklearn.metrics")
    scores, labels = some_scores(999, 2)
    margins = (scores[:, 1] - scores[:, 0]).mul(4).round() / 4  # with ties
    found = measured(roc_auc(), scores=margins, labels=labels)
    assert found["AUC"] == pytest.approx(metrics.roc_auc_score(labels, margins), abs=1e-14)
    both = torch.stack([margins, scores[:, 0]], 1)
    pairs = torch.stack([labels, 1 - labels], 1)
    found = measured(roc_auc(), scores=both, labels=pairs)
    assert found["AUC"] == pytest.approx(metrics.roc_auc_score(pairs, both), abs=1e-14)
    probabilities = margins.sigmoid()
    expected = metrics.log_loss(labels, probabilities)
    found = measured(log_loss(), probabilities=probabilities, labels=labels)
    assert found["log_loss"] == pytest.approx(expected, abs=1e-14)
    assert measured(accuracy(threshold=0), scores=margins, labels=labels) == {
        "accuracy": metrics.accuracy_score(labels, margins > 0)
    }


def test_tokens_are_those_of_torchmetrics() -> None:
    text = judge("torchmetrics.functional.text")
    classification = judge("torchmetrics.functional.classification")
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(9, 13, 50, generator=generator, dtype=torch.float64)
    labels = torch.randint(50, (9, 13), generator=generator)
    labels[:, 10:] = -100
    expected = text.perplexity(scores, labels, ignore_index=-100).item()
    found = measured(perplexity(), scores=scores, labels=labels)
    assert found["perplexity"] == pytest.approx(expected, rel=1e-14)
    for k in (1, 5):
        expected = classification.multiclass_accuracy(
            scores.flatten(0, 1), labels.flatten(), 50, average="micro", top_k=k, ignore_index=-100
        ).item()
        found = measured(top_k_accuracy(k, name="found"), scores=scores, labels=labels)
        assert found["found"] == pytest.approx(expected, rel=1e-6)


def test_words_are_those_of_jiwer() -> None:
    jiwer = judge("jiwer")
    random = np.random.default_rng(5)
    texts = [
        [" ".join(random.choice(["a", "be", "sea"], random.integers(1, 9))) for _ in range(40)]
        for _ in range(2)
    ]
    metric = word_error_rate(lambda ids: bytes(ids).decode(), padding=0)
    found = measured(metric, references=bytes_of(texts[0]), hypotheses=bytes_of(texts[1]))
    assert found["WER"] == pytest.approx(jiwer.wer(*texts), rel=1e-15)


def test_dice_is_that_of_torchmetrics() -> None:
    segmentation = judge("torchmetrics.functional.segmentation")
    generator = torch.Generator().manual_seed(6)
    truth = torch.randint(4, (5, 6, 7, 8), generator=generator)
    found = truth.where(torch.rand(truth.shape, generator=generator) < 0.7, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = segmentation.dice_score(
            found, truth, 4, include_background=False, average="macro", input_format="index"
        )
    ours = measured(dice(4), predictions=found, labels=truth)
    assert ours["Dice"] == pytest.approx(expected.mean().item(), rel=1e-6)  # it counts in f32


def test_boxes_are_those_of_pycocotools() -> None:
    coco, evaluation = judge("pycocotools.coco"), judge("pycocotools.cocoeval")
    random = np.random.default_rng(8)
    truth = random_truth(random)
    for annotation in truth["annotations"]:
        annotation["iscrowd"] = 0
        annotation["area"] = annotation["bbox"][2] * annotation["bbox"][3]
    results = detected(random, truth)
    with contextlib.redirect_stdout(io.StringIO()):
        ground_truth = coco.COCO()
        ground_truth.dataset = truth
        ground_truth.createIndex()
        judged = evaluation.COCOeval(ground_truth, ground_truth.loadRes(results), "bbox")
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    ids = sorted(image["id"] for image in truth["images"])  # the order in which equal scores count
    outputs = objects_of(ids, results, "")
    names = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]
    by_file = measured(average_precision(truth), **outputs, image_ids=ids)
    assert list(by_file) == names
    np.testing.assert_array_equal(list(by_file.values()), judged.stats)
    outputs |= objects_of(ids, truth["annotations"], "true_")
    by_outputs = measured(average_precision(), **outputs)
    np.testing.assert_array_equal(list(by_outputs.values()), judged.stats)


def test_masks_are_those_of_pycocotools() -> None:
    coco, evaluation = judge("pycocotools.coco"), judge("pycocotools.cocoeval")
    coder = judge("pycocotools.mask")
    random = np.random.default_rng(9)
    truth = random_truth(random)  # polygons; of every third object runs
    for annotation in truth["annotations"][::3]:
        runs = coder.merge(coder.frPyObjects(annotation["segmentation"], 90, 120))
        annotation["segmentation"] = {**runs, "counts": runs["counts"].decode()}
    results = detected(random, truth)
    masks = as_masks(results)
    with contextlib.redirect_stdout(io.StringIO()):
        ground_truth = coco.COCO()
        ground_truth.dataset = truth
        ground_truth.createIndex()
        judged = evaluation.COCOeval(ground_truth, ground_truth.loadRes(masks), "segm")
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    ids = sorted(image["id"] for image in truth["images"])
    outputs = objects_of(ids, results, "") | {"image_ids": torch.tensor(ids)}
    decoded = [torch.from_numpy(coder.decode(item["segmentation"]).astype(bool)) for item in masks]
    pixels = torch.zeros(*outputs["labels"].shape, 90, 120, dtype=torch.bool)
    for i, image in enumerate(ids):
        of_image = [
            mask for mask, item in zip(decoded, masks, strict=True) if item["image_id"] == image
        ]
        for j, mask in enumerate(of_image):
            pixels[i, j] = mask
    assert judged.stats[0] > 0
    metric = average_precision(truth, masks="masks")
    found = measured(metric, **outputs, masks=pixels)
    names = [name for name in found if name.startswith("mask ")]
    assert len(found) == 24
    np.testing.assert_array_equal([found[name] for name in names], judged.stats)
    assert measured(metric, **outputs, masks=runs_of(pixels)) == found


def runs_of(pixels: torch.Tensor) -> torch.Tensor:
    """Of masks [samples, objects, height, width], -1 behind the last."""
    flat = pixels.transpose(2, 3).flatten(2)
    runs = torch.full((*flat.shape[:2], 500), -1)
    for i in range(flat.shape[0]):
        for j in range(flat.shape[1]):
            values, counts = torch.unique_consecutive(flat[i, j], return_counts=True)
            own = [0, *counts.tolist()] if bool(values[0]) else counts.tolist()
            runs[i, j, : len(own)] = torch.tensor(own)
    return runs


def objects_of(ids: list[int], items: list[dict[str, Any]], prefix: str) -> dict[str, torch.Tensor]:
    """Outputs of these boxes, with places left over."""
    images = [[item for item in items if item["image_id"] == image] for image in ids]
    shape = (len(ids), max(map(len, images)) + 1)
    boxes, scores = torch.zeros(*shape, 4, dtype=torch.float64), torch.zeros(*shape)
    labels = torch.full(shape, -1)
    for i, objects in enumerate(images):
        for j, item in enumerate(objects):
            x, y, width, height = item["bbox"]
            boxes[i, j] = torch.tensor([x, y, x + width, y + height], dtype=torch.float64)
            scores[i, j] = item.get("score", 0)
            labels[i, j] = item["category_id"]
    made = {f"{prefix}boxes": boxes, f"{prefix}labels": labels}
    return made if prefix else made | {"scores": scores.double()}
