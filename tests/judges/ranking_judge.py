"""ROC AUC and log loss, judged by scikit-learn."""

from __future__ import annotations

import json
import unittest

import judging

judging.require("numpy", "safetensors", "sklearn")

import numpy as np  # noqa: E402
from sklearn.metrics import log_loss, roc_auc_score  # noqa: E402

ADULT = judging.DATA / "parity-auc"


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    tensors = {"scores": scores.astype(np.float32), "labels": labels.astype(np.uint8)}
    return float(judging.call("auc", tensors)["auc"][0])


def losses(probabilities: np.ndarray, labels: np.ndarray) -> list[float]:
    tensors = {"probabilities": probabilities, "labels": labels.astype(np.uint8)}
    found: list[float] = judging.call("log_losses", tensors)["losses"].tolist()
    return found


class Ranking(unittest.TestCase):
    def test_auc(self) -> None:
        random = np.random.default_rng(1)
        for n, values in ((10, 3), (1000, 5), (30_000, 100), (100_000, 0)):
            labels = random.random(n) < 0.3
            labels[:2] = [False, True]
            scores = random.standard_normal(n) + labels
            if values:
                scores = np.round(scores * values) / values
            for given in (scores.astype(np.float32), 1 / (1 + np.exp(-scores.astype(np.float32)))):
                self.assertAlmostEqual(
                    auc(given, labels), roc_auc_score(labels, given), delta=1e-12
                )

    def test_log_loss(self) -> None:
        random = np.random.default_rng(2)
        labels = random.random(10_000) < 0.2
        probabilities = random.random(10_000)
        probabilities[:4] = [0, 1, 1e-20, 1 - 1e-16]
        # 0 and 1 are clipped by the type's epsilon; of f32 scikit-learn also adds up in f32.
        for dtype, delta in ((np.float64, 1e-12), (np.float32, 1e-6)):
            given = probabilities.astype(dtype)
            self.assertAlmostEqual(losses(given, labels)[0], log_loss(labels, given), delta=delta)

    @unittest.skipUnless(ADULT.exists(), "the scores of Adult are not here")
    def test_adult(self) -> None:
        rows = np.loadtxt(ADULT / "adult_val_scores.tsv", skiprows=1)
        expected = json.loads((ADULT / "expected.json").read_text())
        found = auc(rows[:, 1], rows[:, 0])
        self.assertAlmostEqual(found, expected["roc_auc"], delta=1e-12)
        loss, entropy = losses(rows[:, 1], rows[:, 0])
        self.assertAlmostEqual(loss, expected["log_loss"], delta=1e-12)
        self.assertAlmostEqual(entropy, expected["normalized_entropy"], delta=1e-12)

    def test_refusal(self) -> None:
        with self.assertRaisesRegex(judging.RefusedError, "score 1 is NaN"):
            auc(np.array([0.5, np.nan]), np.array([0, 1]))


if __name__ == "__main__":
    judging.main()
