"""trireme.Repeated: samples that are read once and used several times."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import trireme

Sample = dict[str, torch.Tensor]
SIZES: dict[str, Any] = {"batch_size": 4, "microbatch_size": 2, "serial": True}


class Points(torch.utils.data.Dataset[Sample]):
    """24 points, and how often each was read."""

    def __init__(self) -> None:
        self.reads: Counter[int] = Counter()

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Sample:
        self.reads[index] += 1
        return {"x": torch.arange(3) * 0.5 + index, "y": torch.tensor(index % 3)}


def same(sample: Sample, generator: torch.Generator) -> Sample:
    return sample


def noisy(sample: Sample, generator: torch.Generator) -> Sample:
    return {**sample, "x": sample["x"] + torch.randn(3, generator=generator)}


def loss(model: nn.Module, batch: Sample) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch["x"] / 24), batch["y"])


def session_of(data: Any, **options: Any) -> trireme.Session:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3))
    return trireme.Session(model, loss, data, **{**SIZES, **options})


def losses(data: Any, steps: int = 12, **options: Any) -> list[float]:
    return [report.loss for report in session_of(data, steps=steps, **options)]


def test_the_order_is_that_of_sources_in_cpp() -> None:
    points = Points()
    whole = {
        name: torch.stack([point[name] for point in map(points.__getitem__, range(24))])
        for name in ("x", "y")
    }
    in_memory = losses(trireme.Repeated(whole, 2, block_samples=8))
    for augment in (None, same):
        repeated = trireme.Repeated(Points(), 2, block_samples=8, augment=augment)
        assert losses(repeated) == in_memory
    assert losses(Points()) != in_memory
    assert losses(trireme.Repeated(Points(), 1)) == losses(Points())


def test_a_sample_is_read_once_for_all_uses() -> None:
    points = Points()
    reader = trireme.Repeated(points, 3, block_samples=8, augment=same).reader(
        lambda index, epoch: points[index]
    )
    for block in range(0, 24, 8):
        for use in range(3):
            for index in range(block, block + 8):
                assert reader(index, use)["x"][0] == index
    assert set(points.reads.values()) == {1}
    for use in (3, 3, 4, 5):  # the next epoch; a use that is read again counts once
        reader(7, use)
    assert points.reads[7] == 2


def test_what_has_no_room_is_read_again() -> None:
    points = Points()
    reader = trireme.Repeated(points, 2, block_samples=2, augment=same).reader(
        lambda index, epoch: points[index]
    )
    for use in range(2):
        for index in range(3):
            assert reader(index, use)["x"][0] == index
    assert points.reads == {0: 2, 1: 2, 2: 2}


def test_each_use_has_draws_of_its_own() -> None:
    points = Points()

    def drawn(seed: int) -> list[float]:
        repeated = trireme.Repeated(points, 2, augment=noisy, seed=seed)
        reader = repeated.reader(lambda index, epoch: points[index])
        visits = [(index, visit) for visit in (3, 0, 2, 1) for index in (5, 4)]
        return [float(reader(index, visit)["x"][0]) - index for index, visit in visits]

    assert len(set(drawn(1))) == 8
    assert drawn(1) == drawn(1)
    assert not set(drawn(1)) & set(drawn(2))


def test_a_run_resumes_within_a_block(tmp_path: Path) -> None:
    def repeated() -> trireme.Repeated:
        return trireme.Repeated(Points(), 3, block_samples=12, augment=noisy)

    ranks: dict[str, Any] = {"serial": False, "stages": 1}
    whole = losses(repeated(), **ranks)
    first = session_of(repeated(), steps=5, folder=str(tmp_path / "run"), **ranks)
    found = [report.loss for report in first]
    first.finish()
    first.close()
    rest = session_of(repeated(), steps=12, folder=str(tmp_path / "run"), resume=True, **ranks)
    assert [*found, *(report.loss for report in rest)] == whole
    assert losses(repeated()) == whole


def test_samples_may_differ_in_length() -> None:
    class Words(Points):
        def __getitem__(self, index: int) -> Sample:
            return {"x": torch.ones(1 + index % 3), "y": torch.tensor(index % 3)}

    def word_loss(model: nn.Module, batch: Sample) -> torch.Tensor:
        return nn.functional.cross_entropy(model(batch["x"].sum(1, keepdim=True)), batch["y"])

    padded = trireme.Padded(Words(), {"words": [1, 3]}, {"x": {0: "words"}})
    session = trireme.Session(
        nn.Linear(1, 3),
        word_loss,
        trireme.Repeated(padded, 2, block_samples=8, augment=same),
        steps=3,
        **SIZES,
    )
    assert len(list(session)) == 3


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(TypeError, match="Repeated already"):
        trireme.Repeated(trireme.Repeated(Points(), 2), 2)
    with pytest.raises(TypeError, match="give a map-style data set"):
        trireme.Repeated({"x": torch.zeros(4, 3)}, 2, augment=same)
    for numbers in ({"times": 0}, {"times": 2, "block_samples": 0}):
        with pytest.raises(ValueError, match="give 1 to 2\\^20 times"):
            trireme.Repeated(Points(), **numbers)
