"""Metrics of trireme.metrics on numbers that are known by hand, cut into parts in several ways."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from trireme import volume
from trireme.errors import Error
from trireme.metrics import (
    Metric,
    accuracy,
    average_precision,
    dice,
    log_loss,
    perplexity,
    roc_auc,
    together,
    top_k_accuracy,
    word_error_rate,
)

NAN = float("nan")


def measured(metric: Metric, **outputs: Any) -> Mapping[str, float]:
    """Of all samples at once, and the same bits of one after the other, of two after the other."""
    tensors = {name: torch.as_tensor(values) for name, values in outputs.items()}
    count = len(next(iter(tensors.values())))
    found = []
    for size in (count, 1, 2):
        parts = []
        for begin in range(0, count, size or 1):
            part = {name: tensor[begin : begin + size] for name, tensor in tensors.items()}
            parts.append(metric.of_part(part))
        found.append(metric.results(parts))
    for other in found[1:]:
        np.testing.assert_equal(other, found[0])
    return found[0]


SCORES = [[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [0.4, 0.4, 0.2], [0.2, 0.3, 0.5]]


def test_accuracy_of_classes() -> None:
    assert measured(accuracy(), scores=SCORES, labels=[1, 2, 0, 2]) == {"accuracy": 0.75}
    assert measured(top_k_accuracy(2), scores=SCORES, labels=[1, 2, 1, 0]) == {
        "top2_accuracy": 0.75
    }
    # Of equal scores the first counts.
    assert measured(accuracy(), scores=SCORES, labels=[0, 1, 1, 0]) == {"accuracy": 0}
    found = measured(
        accuracy("says", "is", name="right"), says=[[1, 0, 2]] * 3, **{"is": [2, 2, 0]}
    )
    assert found == {"right": 2 / 3}


def test_accuracy_of_tokens_leaves_out_what_is_ignored() -> None:
    scores = torch.tensor(SCORES).reshape(2, 2, 3)
    assert measured(accuracy(), scores=scores, labels=[[1, -100], [1, 2]]) == {"accuracy": 2 / 3}
    assert measured(accuracy(ignore_index=2), scores=scores, labels=[[1, 2], [1, 2]]) == {
        "accuracy": 0.5
    }
    bytes_ = torch.tensor([156, 0], dtype=torch.uint8)  # 156 is -100 to eight bits
    found = measured(accuracy(), scores=torch.eye(157)[[156, 1]], labels=bytes_)
    assert found == {"accuracy": 0.5}
    nothing = measured(accuracy(), scores=scores, labels=torch.full((2, 2), -100))
    assert math.isnan(nothing["accuracy"])


def test_accuracy_of_two_classes_and_of_predictions() -> None:
    half = accuracy(threshold=0.5)
    assert measured(half, scores=[0.2, 0.5, 0.6], labels=[0, 1, 1]) == {"accuracy": 2 / 3}
    several = [[0.2, 0.6], [0.6, 0.6]]
    assert measured(half, scores=several, labels=[[False, True], [False, True]]) == {
        "accuracy": 0.75
    }
    assert measured(accuracy(), scores=[3, 1, 2], labels=[3, 1, 0]) == {"accuracy": 2 / 3}


@pytest.mark.parametrize(
    ("metric", "outputs", "message"),
    [
        (
            accuracy(),
            {"scores": [0.2, 0.6], "labels": [0, 1]},
            "give scores of all classes, or thresh",
        ),
        (
            accuracy(),
            {"scores": SCORES, "labels": [0, 1, 2, 3]},
            "has label 3; there are classes 0 to",
        ),
        (accuracy(), {"scores": SCORES, "labels": [0, 1, 2, -1]}, "has label -1"),
        (accuracy(), {"scores": [[0.1, NAN]], "labels": [0]}, "a score that is NaN"),
        (accuracy(), {"scores": SCORES, "labels": [0.5] * 4}, "labels that are not whole"),
        (
            accuracy(),
            {"scores": SCORES, "labels": [[0]] * 4},
            r"shape \[4, 3\] and 'labels' \[4, 1\]",
        ),
        (accuracy(threshold=0.5), {"scores": SCORES, "labels": [0] * 4}, "have the labels' shape"),
        (
            accuracy(threshold=0),
            {"scores": [-1.0, 1.0], "labels": [-1, 1]},
            "has label -1; there are",
        ),
        (accuracy("logits"), {"scores": SCORES}, "there is no output 'logits', only 'scores'"),
        (
            top_k_accuracy(3),
            {"scores": SCORES, "labels": [0] * 4},
            "among the first 3 of 3 classes",
        ),
        (top_k_accuracy(2), {"scores": [1, 2], "labels": [0, 1]}, "give scores of all classes"),
    ],
)
def test_what_accuracy_refuses(metric: Metric, outputs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metric.of_part({name: torch.tensor(values) for name, values in outputs.items()})


def test_area() -> None:
    # Pairs of a positive and a negative: 0.8 over 0.3 and 0.5, 0.5 over 0.3, and a tie.
    scores, labels = [0.8, 0.3, 0.5, 0.5], [1, 0, 0, 1]
    assert measured(roc_auc(), scores=scores, labels=labels) == {"AUC": 3.5 / 4}
    assert measured(roc_auc(), scores=[[s] for s in scores], labels=labels) == {"AUC": 3.5 / 4}
    halves = torch.tensor(scores, dtype=torch.bfloat16)
    assert measured(roc_auc(), scores=halves, labels=labels) == {"AUC": 3.5 / 4}
    # Of several labels the mean over them.
    both = [[s, 1 - s] for s in scores]
    found = measured(roc_auc(name="area"), scores=both, labels=[[k, k] for k in labels])
    assert found == {"area": (3.5 / 4 + 0.5 / 4) / 2}


def test_what_area_refuses() -> None:
    with pytest.raises(Error, match="class"):
        measured(roc_auc(), scores=[0.1, 0.2], labels=[1, 1])
    with pytest.raises(Error, match="score 1 is NaN"):
        measured(roc_auc(), scores=[0.1, NAN], labels=[0, 1])
    with pytest.raises(ValueError, match="has label 2; there are classes 0 to 1"):
        measured(roc_auc(), scores=[0.1, 0.2], labels=[1, 2])
    with pytest.raises(ValueError, match=r"shape \[2, 2\] and 'labels' \[2\]"):
        measured(roc_auc(), scores=[[0.1, 0.2]] * 2, labels=[0, 1])


def test_log_loss() -> None:
    expected = pytest.approx(-(math.log(0.25) + math.log(0.5) + math.log(0.75)) / 3, rel=1e-15)
    two = measured(log_loss(), probabilities=[0.25, 0.5, 0.25], labels=[1, 0, 0])
    assert two == {"log_loss": expected}
    classes = [[0.25, 0.25, 0.5], [0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]
    assert measured(log_loss(), probabilities=classes, labels=[0, 1, 2]) == {"log_loss": expected}
    rounded = torch.tensor(classes, dtype=torch.bfloat16) * 1.01  # as a softmax in bf16 leaves them
    found = measured(log_loss(), probabilities=rounded, labels=[0, 1, 2])
    assert found["log_loss"] == pytest.approx(two["log_loss"], abs=0.01)
    # Clipped by the type's epsilon.
    certain = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    found = measured(log_loss(), probabilities=certain, labels=[1])
    assert found == {"log_loss": pytest.approx(52 * math.log(2), rel=1e-15)}
    no_samples = log_loss().results(
        [log_loss().of_part({"probabilities": torch.empty(0, 2), "labels": torch.empty(0)})]
    )
    assert math.isnan(no_samples["log_loss"])


def test_what_log_loss_refuses() -> None:
    with pytest.raises(Error, match="probability"):
        measured(log_loss(), probabilities=[0.5, 1.5], labels=[0, 1])
    with pytest.raises(ValueError, match="sum 3, the least of them 1; give them after a softmax"):
        measured(log_loss(), probabilities=[[1.0, 2.0]], labels=[0])
    with pytest.raises(ValueError, match="after a softmax"):
        measured(log_loss(), probabilities=[[NAN, 1.0]], labels=[0])
    with pytest.raises(ValueError, match="has label 2"):
        measured(log_loss(), probabilities=[0.5], labels=[2])
    with pytest.raises(ValueError, match="not whole"):
        measured(log_loss(), probabilities=[0.5], labels=[0.5])
    with pytest.raises(ValueError, match="has label 2"):
        measured(log_loss(), probabilities=[[0.5, 0.5]], labels=[2])
    with pytest.raises(ValueError, match=r"labels \[samples\]"):
        measured(log_loss(), probabilities=[[0.5, 0.5]], labels=[[0]])


def test_perplexity() -> None:
    probabilities = torch.tensor([[[0.5, 0.5], [0.25, 0.75]], [[0.125, 0.875], [0.5, 0.5]]])
    labels = torch.tensor([[0, 0], [0, -100]])
    expected = {"perplexity": pytest.approx(4, rel=1e-7)}  # probabilities 1/2, 1/4, 1/8; f32
    assert measured(perplexity(), scores=probabilities.log() + 3, labels=labels) == expected
    losses = torch.nn.functional.cross_entropy(
        probabilities.log().flatten(0, 1), labels.flatten(), reduction="none"
    )
    by_losses = perplexity(losses="losses")
    assert measured(by_losses, losses=losses.view(2, 2), labels=labels) == expected
    all_ignored = torch.full((2, 2), -100)
    assert math.isnan(
        measured(perplexity(), scores=probabilities, labels=all_ignored)["perplexity"]
    )
    far = torch.tensor([[[0.0, 1000.0]]])
    assert measured(perplexity(), scores=far, labels=[[0]]) == {"perplexity": math.inf}
    with pytest.raises(ValueError, match="a label that is no class"):
        measured(perplexity(), scores=probabilities, labels=[[0, 2], [0, 0]])
    with pytest.raises(ValueError, match=r"give scores \[samples, tokens, vocabulary\] or losses"):
        measured(perplexity(), scores=probabilities, labels=[0, 1])


def bytes_of(texts: list[str]) -> torch.Tensor:
    longest = max(map(len, texts))
    return torch.tensor([list(text.encode()) + [0] * (longest - len(text)) for text in texts])


def test_word_error_rate() -> None:
    references = bytes_of(["the cat sat", "on a mat", ""])
    hypotheses = bytes_of(["the cat sat down", "in mat", ""])
    metric = word_error_rate(lambda ids: bytes(ids).decode(), padding=0)
    # An insertion; a substitution and a deletion: 3 of 6 words.
    assert measured(metric, references=references, hypotheses=hypotheses) == {"WER": 0.5}
    upper = bytes_of(["THE CAT SAT", "ON A MAT", ""])
    blind = word_error_rate(lambda ids: bytes(ids).decode(), padding=0, ignores_case=True, name="e")
    assert measured(blind, references=references, hypotheses=upper) == {"e": 0}


def test_word_error_rate_without_words() -> None:
    metric = word_error_rate(lambda ids: bytes(ids).decode(), padding=0)
    nothing = torch.zeros((2, 3), dtype=torch.long)
    assert measured(metric, references=nothing, hypotheses=nothing) == {"WER": 0}
    something = bytes_of(["a", "b"])
    assert measured(metric, references=nothing, hypotheses=something) == {"WER": math.inf}
    with pytest.raises(ValueError, match=r"give integers \[samples, length\]"):
        measured(metric, references=nothing.float(), hypotheses=something)


def test_dice() -> None:
    truth = torch.tensor([[[0, 1, 1, 2]], [[0, 0, 0, 1]]])
    found = torch.tensor([[[0, 1, 2, 2]], [[0, 0, 0, 0]]])
    # Case 0: class 1 has 2 x 1 / 3, class 2 has 2 x 1 / 3. Case 1: class 1 has 0, class 2 is in neither.
    assert measured(dice(3), predictions=found, labels=truth) == {
        "Dice": pytest.approx((2 / 3 + 0) / 2, rel=1e-15)
    }
    named = measured(
        dice(3, class_names=["kidney", "tumour"]), predictions=found.byte(), labels=truth
    )
    assert named["Dice kidney"] == pytest.approx(1 / 3, rel=1e-15)
    assert named["Dice tumour"] == pytest.approx(2 / 3, rel=1e-15)
    with_background = measured(dice(3, first_class=0), predictions=found, labels=truth)
    assert with_background["Dice"] == pytest.approx(((1 + 4 / 3) / 3 + (6 / 7) / 2) / 2, rel=1e-15)
    smooth = measured(dice(3, smoothing=1), predictions=found[1:], labels=truth[1:])
    assert smooth == {"Dice": pytest.approx((1 / 2 + 1) / 2)}
    volumes = {"predictions": found[:, None], "labels": truth[:, None]}
    assert measured(dice(3), **volumes) == {"Dice": pytest.approx(1 / 3, rel=1e-15)}


def test_dice_of_arrays() -> None:
    truth, found = np.array([[0, 1, 1, 2]]), np.array([[0, 1, 2, 2]], np.uint8)
    np.testing.assert_allclose(volume.dice(found, truth, 4), [1, 2 / 3, 2 / 3, NAN], rtol=1e-15)
    with pytest.raises(
        ValueError, match=r"the prediction has shape \[1, 4\], the truth \[1, 1, 4\]"
    ):
        volume.dice(found, truth[None], 4)
    with pytest.raises(Error, match="0 classes"):
        volume.dice(found, truth, 0)


def test_dice_of_nothing() -> None:
    empty = torch.zeros((2, 3, 4), dtype=torch.uint8)
    found = measured(dice(2, class_names=["kidney"]), predictions=empty, labels=empty)
    assert math.isnan(found["Dice"])
    assert list(found) == ["Dice"]


def test_what_dice_refuses() -> None:
    labels = torch.zeros((1, 2, 2, 3), dtype=torch.int64)
    labels[0, 1, 0, 2] = 2
    with pytest.raises(Error, match=r"label 2 at .*, expected 0 to 1"):
        measured(dice(2), predictions=labels * 0, labels=labels)
    with pytest.raises(ValueError, match=r"those of scores are scores.argmax\(1\)"):
        measured(dice(2), predictions=torch.zeros(1, 2, 2, 2, 3), labels=labels)
    with pytest.raises(ValueError, match="type float32; give integers or bool"):
        measured(dice(2), predictions=labels.float(), labels=labels)
    with pytest.raises(ValueError, match="32 bits"):
        measured(dice(2), predictions=labels + 2**32, labels=labels)
    with pytest.raises(ValueError, match="class_names has 1 names; give 2"):
        dice(3, class_names=["kidney", "kidney"])
    with pytest.raises(ValueError, match="first_class is 2"):
        dice(2, first_class=2)


BOXES = [[[10.0, 10, 50, 50], [60, 60, 90, 90]], [[0, 0, 40, 40], [0, 0, 0, 0]]]
TRUE_LABELS = [[1, 2], [1, -1]]


def test_average_precision_of_boxes() -> None:
    outputs = {"boxes": BOXES, "true_boxes": BOXES, "true_labels": TRUE_LABELS}
    scores = [[0.9, 0.8], [0.7, 0.0]]
    perfect = measured(average_precision(), **outputs, scores=scores, labels=TRUE_LABELS)
    assert [perfect[name] for name in ("AP", "AP50", "AR1", "AR100", "APm")] == [1, 1, 1, 1, 1]
    assert perfect["APl"] == -1  # no box is large
    # Class 2 is never found, class 1 always.
    half = measured(average_precision(), **outputs, scores=scores, labels=[[1, -1], [1, -1]])
    assert half["AP"] == 0.5
    # A better score that is wrong: precision is 1 / 2, then 2 / 3, at all recalls.
    wrong = [[[10.0, 10, 50, 50], [60, 60, 90, 90]], [[0, 0, 40, 40], [90, 0, 99, 9]]]
    found = average_precision(prefix="val/")
    worse = measured(
        found,
        boxes=wrong,
        scores=[[0.8, 0.8], [0.7, 0.9]],
        labels=[[1, 2], [1, 1]],
        true_boxes=BOXES,
        true_labels=TRUE_LABELS,
    )
    assert worse["val/AP"] == pytest.approx((2 / 3 + 1) / 2, rel=1e-12)


def test_average_precision_of_masks() -> None:
    masks = torch.zeros(2, 2, 95, 95, dtype=torch.bool)
    masks[0, 0, 10:50, 10:50] = masks[0, 1, 60:90, 60:90] = masks[1, 0, :40, :40] = True
    outputs = {
        "boxes": BOXES,
        "true_boxes": BOXES,
        "labels": TRUE_LABELS,
        "true_labels": TRUE_LABELS,
        "scores": [[0.9, 0.8], [0.7, 0.0]],
        "true_masks": masks,
    }
    metric = average_precision(masks="masks")
    perfect = measured(metric, **outputs, masks=masks)
    assert [perfect[name] for name in ("AP", "mask AP", "mask AR100", "mask APm")] == [1, 1, 1, 1]
    soft = measured(metric, **outputs, masks=torch.ones(2, 2, 28, 28))
    assert soft["mask AP75"] == 1  # nearly the pixels of the boxes
    nothing = measured(metric, **outputs, masks=torch.full((2, 2, 28, 28), 0.49))
    assert nothing["mask AR100"] == 0
    with pytest.raises(ValueError, match="give bool"):
        measured(metric, **outputs, masks=torch.ones(2, 2, 4))
    with pytest.raises(ValueError, match="in an image of 95 x 95 pixels: masks have 90 x 95"):
        measured(metric, **outputs, masks=masks[:, :, :90])
    with pytest.raises(ValueError, match="sample 0 has a true mask of label 1 without an area"):
        measured(metric, **outputs | {"true_masks": masks & False}, masks=masks)


def test_average_precision_beside_a_file_of_truth() -> None:
    annotations = [
        {
            "id": 1,
            "image_id": 7,
            "category_id": 5,
            "bbox": [10, 10, 40, 40],
            "area": 1600,
            "iscrowd": 0,
        },
        {
            "id": 2,
            "image_id": 9,
            "category_id": 5,
            "bbox": [0, 0, 10, 10],
            "area": 100,
            "iscrowd": 0,
        },
    ]
    truth = {
        "images": [{"id": 7}, {"id": 8}, {"id": 9}],
        "categories": [{"id": 5, "name": "bird"}],
        "annotations": annotations,
    }
    outputs = {"boxes": BOXES, "scores": [[0.9, 0.8], [0.7, 0.0]], "labels": [[5, -1], [-1, -1]]}
    # Image 9 does not come, so that its annotation does not count.
    found = measured(average_precision(truth), **outputs, image_ids=[7, 8])
    assert found["AP"] == pytest.approx(1, rel=1e-12)
    assert measured(average_precision(truth), **outputs, image_ids=[7, 9])["AR100"] == 0.5
    with pytest.raises(ValueError, match="the truth has no image 6"):
        measured(average_precision(truth), **outputs, image_ids=[7, 6])
    with pytest.raises(ValueError, match="an image came twice"):
        measured(average_precision(truth), **outputs, image_ids=[7, 7])


def test_what_average_precision_refuses() -> None:
    outputs = {"boxes": BOXES, "scores": [[0.9, 0.8], [0.7, 0.0]], "labels": TRUE_LABELS}
    with pytest.raises(
        ValueError, match="sample 1 has a true box of label 0 without an area, 0 x 0"
    ):
        measured(average_precision(), **outputs, true_boxes=BOXES, true_labels=[[1, 2], [1, 0]])
    with pytest.raises(ValueError, match=r"give boxes \[samples, objects, 4\]"):
        measured(
            average_precision({"images": [], "categories": []}), **outputs | {"labels": [1, 2]}
        )
    with pytest.raises(ValueError, match="'scores' has shape"):
        measured(average_precision(), **outputs | {"scores": [0.5, 0.5]})


def test_several_together() -> None:
    both = together(accuracy(), [top_k_accuracy(2), lambda outputs: {"n": len(outputs["labels"])}])
    assert measured(both, scores=SCORES, labels=[1, 2, 0, 2]) == {
        "accuracy": 0.75,
        "top2_accuracy": 1,
        "n": 4,
    }
    with pytest.raises(ValueError, match="two metrics are called 'accuracy'"):
        measured(together(accuracy(), accuracy()), scores=SCORES, labels=[1, 2, 0, 2])
    with pytest.raises(TypeError, match=r"give one of trireme.metrics, called, as accuracy\(\)"):
        together("accuracy")  # type: ignore[arg-type]
