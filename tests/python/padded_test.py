"""trireme.Padded: samples of different lengths, each microbatch padded to one of a few."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn

import trireme
from training import TRAINED


class Sentences(torch.utils.data.Dataset[dict[str, Any]]):
    """1 to 12 words, and a label for each."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> dict[str, Any]:
        words = torch.arange(1 + index * 5 % 12) * 7 % 29 + 1 + index % 3
        return {"words": words, "labels": words % 4}


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(33, 16, padding_idx=0)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.labels = nn.Linear(16, 4)

    def forward(self, words: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        x = self.block(self.words(words), src_key_padding_mask=words == 0)
        return nn.functional.cross_entropy(
            self.labels(x).flatten(0, 1), labels.flatten(), reduction="sum", ignore_index=-100
        )


def loss(model: nn.Module, batch: dict[str, torch.Tensor]) -> trireme.Loss:
    return trireme.sum_loss(model(**batch), (batch["labels"] != -100).sum())


DIMS: dict[str | int, dict[int, str]] = {"words": {0: "words"}, "labels": {0: "words"}}


def padded(lengths: list[int], **options: Any) -> trireme.Padded:
    return trireme.Padded(
        Sentences(), {"words": lengths}, DIMS, padding={"labels": -100}, **options
    )


def losses(data: trireme.Padded, stages: int) -> list[float]:
    torch.manual_seed(1)
    session = trireme.Session(Tagger(), loss, data, stages=stages, serial=True, **TRAINED)
    return [report.loss for report in session]


def test_stages_have_the_bits_of_the_plain_model() -> None:
    found = trireme.verify(
        Tagger(), loss, padded([4, 8, 12]), stages=2, batch_size=16, microbatch_size=4
    )
    assert all(comparison.is_bitwise for comparison in found.comparisons)
    assert losses(padded([4, 8, 12]), stages=2) == losses(padded([4, 8, 12]), stages=1)


def test_padding_is_no_part_of_the_loss() -> None:
    def first_loss(lengths: list[int]) -> float:
        torch.manual_seed(1)
        model = Tagger().eval()  # without dropout, whose shape is that of the padded batch
        session = trireme.Session(model, loss, padded(lengths), serial=True, **TRAINED)
        return next(iter(session)).loss

    assert first_loss([4, 8, 12]) == pytest.approx(first_loss([12]), abs=1e-5)


def test_a_graph_says_its_lengths() -> None:
    graph = trireme.record(Tagger(), loss, padded([4, 12]), microbatch_size=4)
    assert "samples padded to words 4, words 12" in graph.show()


def test_lengths_may_be_given_without_reading() -> None:
    asked = []

    def length_of(index: int) -> int:
        asked.append(index)
        return 1 + index * 5 % 12

    assert losses(padded([4, 12], length_of=length_of), stages=1) == losses(
        padded([4, 12]), stages=1
    )
    assert len(asked) == len(set(asked)), "once each"


class Counted(Sentences):
    def __init__(self) -> None:
        self.reads: Counter[int] = Counter()

    def __getitem__(self, index: int) -> dict[str, Any]:
        self.reads[index] += 1
        return super().__getitem__(index)


def counted(data: Counted, **options: Any) -> trireme.Padded:
    return trireme.Padded(data, {"words": [4, 12]}, DIMS, padding={"labels": -100}, **options)


def test_a_sample_is_read_once_for_its_length_and_its_use() -> None:
    data = Counted()
    sizes: dict[str, Any] = {"batch_size": 8, "microbatch_size": 4, "drift_check_steps": []}
    session = trireme.Session(Tagger(), loss, counted(data), serial=True, steps=5, **sizes)
    data.reads.clear()  # of recordings, which use samples too
    assert len(list(session)) == 5, "an epoch"
    assert set(data.reads.values()) == {1}
    assert losses(counted(Counted()), 1) == losses(counted(Counted(), keep_bytes=100), 1)


def test_samples_wait_in_a_room_of_bytes() -> None:
    data = Counted()
    padded = counted(data, keep_bytes=336)  # samples 0 to 3 have 16, 96, 176 and 64
    for index in (0, 1, 2, 3):  # the last puts out the first
        assert padded.lengths_of(index) == {"words": 1 + index * 5 % 12}
    for index in (1, 2, 3, 0):
        assert torch.equal(padded.sample(index)["words"], Sentences()[index]["words"])
    assert data.reads == {0: 2, 1: 1, 2: 1, 3: 1}
    assert padded.lengths_of(2) and padded.sample(2), "known, and read for another use"
    assert data.reads[2] == 2
    small = Counted()
    none = counted(small, keep_bytes=15)
    none.sample(0)
    assert small.reads == {0: 2}


def test_threads_that_ask_for_a_length_read_once() -> None:
    class Slow(Counted):
        def __getitem__(self, index: int) -> dict[str, Any]:
            time.sleep(0.001)
            return super().__getitem__(index)

    data = Slow()
    padded = counted(data)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(padded.lengths_of, [*range(40)] * 4))
    assert found == [{"words": 1 + index * 5 % 12} for index in range(40)] * 4
    assert set(data.reads.values()) == {1}


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"samples have no fields \['word'\]"):
        trireme.Padded(Sentences(), {"words": [12]}, {"word": {0: "words"}})
    with pytest.raises(ValueError, match="give each as many"):
        trireme.Padded(Sentences(), {"words": [4, 12], "labels": [12]}, DIMS)
    with pytest.raises(trireme.Error, match="longer than the longest"):
        losses(padded([4, 8]), stages=1)
    with pytest.raises(trireme.Error, match=r"field 'words' of sample .*, expected was Long \[1\]"):
        losses(padded([4, 12], length_of=lambda index: 1), stages=1)
