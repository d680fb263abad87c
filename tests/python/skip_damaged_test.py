"""trireme.SkipDamaged: damaged samples, and those that stand in for them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import trireme

Sample = dict[str, torch.Tensor]
SIZES: dict[str, Any] = {"batch_size": 4, "microbatch_size": 2, "serial": True, "steps": 6}


class Broken(Exception):
    """What a decoder raises."""


class Points(torch.utils.data.Dataset[Sample]):
    """12 points, of which some cannot be decoded, or are gone."""

    def __init__(self, damaged: set[int], gone: int | None = None) -> None:
        self.damaged, self.gone = damaged, gone

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Sample:
        if index in self.damaged:
            raise Broken(f"point {index} ends early")
        if index == self.gone:
            raise FileNotFoundError(f"point {index}")
        return {"x": torch.arange(3) * 0.1 + index}


class Replaced(Points):
    """The same with what has to stand in."""

    def __getitem__(self, index: int) -> Sample:
        while index in self.damaged:
            index = (index + 1) % 12
        return super().__getitem__(index)


def loss(model: nn.Module, batch: Sample) -> torch.Tensor:
    return (model(batch["x"]) - 1).square().mean()


def losses(data: Any, **options: Any) -> list[float]:
    torch.manual_seed(3)
    session = trireme.Session(nn.Linear(3, 1), loss, data, **{**SIZES, **options})
    return [report.loss for report in session]


def test_the_next_whole_sample_stands_in(tmp_path: Path) -> None:
    file = tmp_path / "damaged.jsonl"
    damaged = {0, 4, 5, 11}
    data = trireme.SkipDamaged(Points(damaged), 4, quarantine=file, damaged=Broken)
    expected = losses(Replaced(damaged))
    assert losses(data) == expected
    assert losses(data, reader_threads=3) == expected
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["sample"] for line in lines} == damaged
    assert {line["error"] for line in lines if line["sample"] == 4} == {
        "Broken: point 4 ends early"
    }


def test_beyond_the_budget_the_sample_is_named() -> None:
    data = trireme.SkipDamaged(Points({4, 5}), 1, damaged=(Broken, KeyError))
    with pytest.raises(trireme.Error, match="point . ends early; 1 others were skipped") as failure:
        losses(data)
    assert failure.value.kind == "corrupt data"
    with pytest.raises(trireme.Error, match="point 1 ends early"):
        losses(trireme.SkipDamaged(Points({0, 1}), 1, damaged=Broken))


def test_what_is_no_damage_ends_the_training() -> None:
    with pytest.raises(trireme.Error, match="FileNotFoundError: point 7") as failure:
        losses(trireme.SkipDamaged(Points(set(), gone=7), 12, damaged=Broken))
    assert isinstance(failure.value.__cause__, FileNotFoundError)
    with pytest.raises(trireme.Error, match="Broken: point 4") as failure:
        losses(trireme.SkipDamaged(Points({4}), 12))
    assert failure.value.kind != "corrupt data"


def test_damage_in_records_is_known(tmp_path: Path) -> None:
    """A line that is no JSON is an Error of open_records, which needs no `damaged`."""

    class Lines(Points):
        def __init__(self) -> None:
            super().__init__(set())
            path = tmp_path / "x.jsonl"
            good = [json.dumps({"x": index}) for index in range(12)]
            good[4] = good[4].replace("4", "four")
            path.write_text("\n".join(good) + "\n")
            self.records = trireme.open_records(path)

        def __getitem__(self, index: int) -> Sample:
            return {"x": torch.arange(3) * 0.1 + int(self.records[index]["x"])}

    assert losses(trireme.SkipDamaged(Lines(), 1)) == losses(Replaced({4}))


def test_lengths_and_repeats_go_through() -> None:
    """A sample that is repeated, of two lengths: what stands in is as long."""

    class Words(Points):
        def __getitem__(self, index: int) -> Sample:
            return {"x": super().__getitem__(index)["x"][: 1 + index % 2]}

    def word_loss(model: nn.Module, batch: Sample) -> torch.Tensor:
        return (model(batch["x"].sum(1, keepdim=True)) - 1).square().mean()

    uses: list[float] = []

    def augment(sample: Sample, generator: torch.Generator) -> Sample:
        uses.append(float(sample["x"][0]))
        return sample

    padded = trireme.Padded(
        Words({4}), {"words": [1, 2]}, {"x": {0: "words"}}, length_of=lambda index: 1 + index % 2
    )
    data = trireme.Repeated(
        trireme.SkipDamaged(padded, 1, damaged=Broken), 2, block_samples=12, augment=augment
    )
    session = trireme.Session(nn.Linear(1, 1), word_loss, data, drift_check_steps=[], **SIZES)
    uses.clear()
    assert len(list(session)) == 6
    assert sorted(uses[:24]) == sorted([0, 1, 2, 3, 6, 5, 6, 7, 8, 9, 10, 11] * 2)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="max_skipped is -1"):
        trireme.SkipDamaged(Points(set()), -1)
    for inner in (
        trireme.Mixed([(Points(set()), 1)]),
        trireme.Repeated(Points(set()), 2),
        trireme.SkipDamaged(Points(set()), 1),
    ):
        with pytest.raises(TypeError, match="around the data set itself"):
            trireme.SkipDamaged(inner, 1)
