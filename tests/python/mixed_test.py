"""trireme.Mixed: several data sets in proportion to their weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import trireme

Sample = dict[str, torch.Tensor]
# A batch is two rounds of the mixture below.
SIZES: dict[str, Any] = {"batch_size": 6, "microbatch_size": 2, "lanes": 1}


class Numbers(torch.utils.data.Dataset[Sample]):
    """So many samples, numbered from `base` on."""

    def __init__(self, base: int, count: int) -> None:
        self.base, self.count = base, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Sample:
        return {"x": torch.full((2,), 0.01 * (self.base + index))}


def loss(model: nn.Module, batch: Sample) -> torch.Tensor:
    return (model(batch["x"]) - 1).square().mean()


def session_of(data: Any, **options: Any) -> trireme.Session:
    torch.manual_seed(3)
    return trireme.Session(nn.Linear(2, 1), loss, data, **{**SIZES, "serial": True, **options})


def losses(data: Any, steps: int = 6, **options: Any) -> list[float]:
    return [report.loss for report in session_of(data, steps=steps, **options)]


def mixed(**options: Any) -> trireme.Mixed:
    return trireme.Mixed([(Numbers(0, 8), 2), (Numbers(100, 5), 1)], **options)


def test_a_session_takes_the_mixtures_order() -> None:
    in_order = mixed(shuffled=False)
    found = losses(in_order, steps=2)
    rounds = [0, 100, 1, 2, 101, 3, 4, 102, 5, 6, 103, 7]
    whole = {"x": torch.stack([torch.full((2,), 0.01 * n) for n in rounds])}
    assert found == losses(whole, steps=2, shuffled=False)
    assert found != losses(in_order, steps=2, shuffled=True), "the caller has the last word"


def test_the_order_is_a_function_of_seed_and_weights() -> None:
    assert losses(mixed(seed=1)) == losses(mixed(seed=1))
    assert losses(mixed(seed=1)) != losses(mixed(seed=2))
    assert losses(mixed(seed=1)) == losses(mixed(seed=1, num_samples=7)), "places go on"


def test_a_run_resumes_within_an_epoch(tmp_path: Path) -> None:
    ranks: dict[str, Any] = {"serial": False, "stages": 1}
    whole = losses(mixed(seed=1), **ranks)
    first = session_of(mixed(seed=1), steps=3, folder=str(tmp_path / "run"), **ranks)
    found = [report.loss for report in first]
    first.finish()
    first.close()
    rest = session_of(mixed(seed=1), steps=6, folder=str(tmp_path / "run"), resume=True, **ranks)
    assert [*found, *(report.loss for report in rest)] == whole


def test_a_mixture_may_be_repeated() -> None:
    """Two rounds a block, each met twice, and augmented by other draws each time."""
    draws: list[tuple[int, float]] = []

    def augment(sample: Sample, generator: torch.Generator) -> Sample:
        draw = torch.rand(1, generator=generator)
        draws.append((round(100 * float(sample["x"][0])), float(draw)))
        return {"x": sample["x"] + draw}

    data = trireme.Repeated(mixed(shuffled=False), 2, block_samples=6, augment=augment)
    session = session_of(data, steps=4, drift_check_steps=[])
    draws.clear()  # of recordings
    assert len(list(session)) == 4
    numbers = [number for number, _ in draws]
    assert sorted(numbers[:6]) == sorted(numbers[6:12]) == [0, 1, 2, 3, 100, 101]
    assert len({draw for _, draw in draws[:12]}) == 12


def test_parts_may_be_of_other_kinds(tmp_path: Path) -> None:
    file = tmp_path / "x.bin"
    file.write_bytes(torch.arange(10, dtype=torch.float32).numpy().tobytes())
    in_file = trireme.open_fixed_records(file, [("x", torch.float32, [2])])
    whole = {"x": torch.arange(10, dtype=torch.float32).reshape(5, 2)}
    assert losses(trireme.Mixed([(in_file, 2), (Numbers(0, 8), 1)])) == losses(
        trireme.Mixed([(whole, 2), (Numbers(0, 8), 1)])
    )


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: trireme.Mixed([]), ValueError, "one data set at least"),
        (
            lambda: trireme.Mixed([(Numbers(0, 8), 1)], num_samples=0),
            ValueError,
            "num_samples is 0",
        ),
        (lambda: trireme.Mixed([Numbers(0, 8)]), TypeError, r"parts are \(data set, weight\)"),
        (
            lambda: trireme.Mixed([(Numbers(0, 8), 0.5)]),
            TypeError,
            "a whole number",
        ),
        (
            lambda: losses(trireme.Mixed([(Numbers(0, 8), 0)])),
            trireme.Error,
            "weight 0; expected 1",
        ),
        (
            lambda: losses(trireme.Mixed([(Numbers(0, 8), 1), ({"y": torch.zeros(3, 2)}, 1)])),
            trireme.Error,
            "source 1 differs from the first in field 'y'",
        ),
        (
            lambda: losses(
                trireme.Repeated(
                    trireme.Mixed([({"x": torch.zeros(3, 2)}, 1)]), 2, augment=lambda s, g: s
                )
            ),
            TypeError,
            "`augment` takes single samples",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    make: Callable[[], Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        make()
