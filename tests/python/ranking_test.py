"""Ranking metrics beside scikit-learn's."""

import numpy as np
import pytest
import torch

from trireme.errors import Error
from trireme.ranking import binary_log_loss, log_loss, roc_auc_score

metrics = pytest.importorskip(
    "sklearn.metrics", reason="scikit-learn is not installed; ./dev test --judges installs it"
)


def some_scores(count: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(count + steps)
    labels = random.random(count) < 0.3
    labels[:2] = [False, True]
    scores = random.standard_normal(count) + labels
    return labels, np.round(scores * steps) / steps if steps else scores


@pytest.mark.parametrize("count", [2, 10, 1000, 30_000])
@pytest.mark.parametrize("steps", [0, 3, 100])
def test_area_is_that_of_sklearn(count: int, steps: int) -> None:
    labels, scores = some_scores(count, steps)
    for given in (scores, scores.astype(np.float32), torch.from_numpy(scores)):
        expected = pytest.approx(metrics.roc_auc_score(labels, np.asarray(given)), abs=1e-12)
        assert roc_auc_score(labels, given) == expected
        assert roc_auc_score(labels.astype(np.int64) * 2 - 1, given) == expected
        assert roc_auc_score(labels[:, None], list(given)) == expected


def test_scores_that_f32_would_join_stay_apart() -> None:
    labels, scores = some_scores(1000, 0)
    near = 1 + scores * 1e-12
    assert roc_auc_score(labels, near) == pytest.approx(metrics.roc_auc_score(labels, near), 1e-12)
    assert len(np.unique(near.astype(np.float32))) < 5


def test_log_loss_is_that_of_sklearn() -> None:
    labels, scores = some_scores(10_000, 0)
    probabilities = 1 / (1 + np.exp(-scores))
    probabilities[:3] = [0, 1, 1e-20]
    expected = metrics.log_loss(labels, probabilities)
    assert log_loss(labels, probabilities) == pytest.approx(expected, abs=1e-12)
    parts = [binary_log_loss(labels[s], probabilities[s]) for s in (slice(99), slice(99, None))]
    both = parts[0] + parts[1]
    assert both.mean == pytest.approx(expected, abs=1e-12)
    assert both.num_samples == 10_000
    share = labels.mean()
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert both.normalized_entropy == pytest.approx(expected / entropy)


def test_what_is_refused() -> None:
    with pytest.raises(Error, match="score 1 is NaN"):
        roc_auc_score([0, 1], [0.5, float("nan")])
    with pytest.raises(Error, match="positive|negative|class"):
        roc_auc_score([1, 1], [0.5, 0.7])
    with pytest.raises(ValueError, match="there are 3 labels and 2 scores; give one for each"):
        roc_auc_score([0, 1, 1], [0.5, 0.7])
    with pytest.raises(ValueError, match="y_true has more than two values"):
        roc_auc_score([0, 1, 2], [0.5, 0.7, 0.1])
    with pytest.raises(ValueError, match=r"y_score has shape \[2, 2\]"):
        roc_auc_score([0, 1], [[0.5, 0.7], [0.1, 0.2]])
    with pytest.raises(Error, match="probability"):
        log_loss([0, 1], [0.5, 1.5])
