"""Word error rate, judged by what NIST's sclite counted."""

from __future__ import annotations

import csv
import unittest
from importlib.util import find_spec

import judging

judging.require("numpy", "safetensors")

import numpy as np  # noqa: E402

SCLITE = judging.DATA / "parity-wer-sclite" / "csrnab.utterances.tsv"


def count(pairs: list[tuple[str, str]], costs: str) -> np.ndarray:
    """[utterances, 5]: words, substitutions, deletions, insertions, whether wrong."""
    texts = {
        name: np.frombuffer("".join(f"{text}\n" for text in column).encode(), np.uint8)
        for name, column in zip(("reference", "hypothesis"), zip(*pairs, strict=True), strict=True)
    }
    counts: np.ndarray = judging.call("word_errors", texts, costs=costs)["counts"]
    return counts


def edit_distance(a: list[str], b: list[str]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before = row
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j - 1] + (x != y), before[j] + 1, row[j - 1] + 1))
    return row[-1]


class WordErrorRate(unittest.TestCase):
    @unittest.skipUnless(SCLITE.exists(), "sclite's counts are not here")
    def test_sclite(self) -> None:
        with SCLITE.open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        pairs = [(row["ref"], row["hyp"]) for row in rows]
        as_sclite = count(pairs, "sclite")
        for row, (words, *errors, _) in zip(rows, as_sclite, strict=True):
            self.assertEqual(errors, [int(row[name]) for name in ("sub", "del", "ins")], row["id"])
            self.assertEqual(words - errors[0] - errors[1], int(row["correct"]), row["id"])
        self.assertEqual(as_sclite.sum(0).tolist(), [1406, 131, 12, 26, 38])
        plain = count(pairs, "unit")
        distances = [int(row["edit_distance_unit_cost"]) for row in rows]
        self.assertEqual(plain[:, 1:4].sum(1).tolist(), distances)
        self.assertEqual(plain[:, 1:4].sum(), 169)

    def test_edit_distance(self) -> None:
        random = np.random.default_rng(1)
        sequences = [
            [chr(ord("a") + int(c)) for c in random.integers(5, size=random.integers(30))]
            for _ in range(200)
        ]
        pairs = list(zip(sequences[::2], sequences[1::2], strict=True))
        counts = count([(" ".join(a), " ".join(b)) for a, b in pairs], "unit")
        self.assertEqual(counts[:, 1:4].sum(1).tolist(), [edit_distance(a, b) for a, b in pairs])

    @unittest.skipUnless(find_spec("jiwer"), "jiwer is not installed")
    def test_jiwer(self) -> None:
        import jiwer

        random = np.random.default_rng(2)
        sizes = random.integers(1, 30, size=(100, 2))  # jiwer refuses empty references
        lines = [[" ".join(map(str, random.integers(9, size=n))) for n in pair] for pair in sizes]
        counts = count([(a, b) for a, b in lines], "unit")
        for (a, b), (_, *errors, wrong) in zip(lines, counts, strict=True):
            its = jiwer.process_words(a, b)
            self.assertEqual(sum(errors), its.substitutions + its.deletions + its.insertions)
            self.assertEqual(wrong, its.wer > 0)


if __name__ == "__main__":
    judging.main()
