"""trireme.Packed: samples of different lengths behind each other in rows."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import trireme
from padded_test import DIMS, Sentences, Tagger, padded
from training import TRAINED

ROW = {"words": 20}


class RowTagger(Tagger):
    """The same of rows: words attend to those of their own sentence."""

    def of_rows(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        segments = batch["words_segments"]
        apart = segments.unsqueeze(2) != segments.unsqueeze(1)
        x = self.block(self.words(batch["words"]), src_mask=apart.repeat_interleave(2, 0))
        return nn.functional.cross_entropy(
            self.labels(x).flatten(0, 1),
            batch["labels"].flatten(),
            reduction="sum",
            ignore_index=-100,
        )


def loss(model: RowTagger, batch: dict[str, torch.Tensor]) -> trireme.Loss:
    return trireme.sum_loss(model.of_rows(batch), (batch["labels"] != -100).sum())


def packed(**options: Any) -> trireme.Packed:
    return trireme.Packed(padded([12]), ROW, **options)


def session_of(**options: Any) -> trireme.Session:
    torch.manual_seed(1)
    return trireme.Session(RowTagger(), loss, packed(), **{"serial": True, **TRAINED, **options})


class Numbered(torch.utils.data.Dataset[dict[str, Any]]):
    """Sentences, each with a number of its own."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {**Sentences()[index], "number": torch.tensor(index)}


def test_an_evaluation_of_rows_is_that_of_the_sentences() -> None:
    """Summed over all words, which each has once, of the same weights."""

    def total(data: Any, of_batch: Any) -> float:
        torch.manual_seed(1)
        session = trireme.Session(
            RowTagger(), of_batch, data, evaluation=data, serial=True, **TRAINED
        )
        return session.evaluate().total

    def of_sentences(model: RowTagger, batch: dict[str, torch.Tensor]) -> trireme.Loss:
        return trireme.sum_loss(model(**batch), (batch["labels"] != -100).sum())

    assert total(packed(), loss) == pytest.approx(total(padded([12]), of_sentences), rel=1e-5)


def test_stages_have_the_bits_of_the_plain_model() -> None:
    runs = [[report.loss for report in session_of(stages=stages)] for stages in (1, 2)]
    assert runs[0] == runs[1]
    assert runs[0][-1] < runs[0][0]


def test_a_run_resumes_within_an_epoch(tmp_path: Path) -> None:
    ranks: dict[str, Any] = {"serial": False, "stages": 1, "batch_size": 4, "microbatch_size": 2}
    whole = [report.loss for report in session_of(steps=6, **ranks)]
    first = session_of(steps=3, folder=str(tmp_path / "run"), **ranks)
    found = [report.loss for report in first]
    first.finish()
    first.close()
    rest = session_of(steps=6, folder=str(tmp_path / "run"), resume=True, **ranks)
    assert [*found, *(report.loss for report in rest)] == whole


def test_other_fields_are_of_each_sample() -> None:
    """The sum over all sentences of their numbers times their lengths."""

    def numbered(model: nn.Module, batch: dict[str, torch.Tensor]) -> trireme.Loss:
        lengths = batch["words_lengths"]
        assert lengths.shape[1] == batch["number"].shape[1] == 4
        total = (batch["number"] * lengths).sum().float()
        return trireme.sum_loss(total + 0 * model(total.reshape(1)).sum(), (lengths > 0).sum())

    rows = trireme.Packed(
        trireme.Padded(Numbered(), {"words": [12]}, DIMS), {"words": 24}, max_segments=4
    )
    session = trireme.Session(
        nn.Linear(1, 1), numbered, rows, evaluation=rows, serial=True, **TRAINED
    )
    expected = sum(i * len(Sentences()[i]["words"]) for i in range(40)) / 40
    assert session.evaluate().total == pytest.approx(expected)


def test_what_cannot_be_packed_is_refused() -> None:
    with pytest.raises(TypeError, match=r"say by trireme.Padded"):
        trireme.Packed(Sentences())
    with pytest.raises(TypeError, match="data is Packed; pack the data set itself"):
        trireme.Packed(packed())
    with pytest.raises(TypeError, match="put them within it"):
        trireme.Session(RowTagger(), loss, trireme.SkipDamaged(packed(), 3), **TRAINED)
    with pytest.raises(trireme.Error, match="has 11 'words', a row 8"):
        trireme.Session(RowTagger(), loss, trireme.Packed(padded([12]), {"words": 8}), **TRAINED)
