"""trireme.open_fixed_records: files of records of one size, as samples and as a Session's data."""

from pathlib import Path

import pytest
import torch

import trireme
from trireme.fixed_records import FixedRecords

FIELDS = [
    ("label", torch.int32, []),
    ("", torch.uint8, [3]),
    ("x", torch.float32, [4]),
    ("words", torch.int64, [2]),
]


@pytest.fixture
def samples() -> list[dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(5)
    return [
        {
            "label": torch.tensor(i % 3, dtype=torch.int32),
            "x": torch.randn(4, generator=generator),
            "words": torch.tensor([i, i * i]),
        }
        for i in range(40)
    ]


@pytest.fixture
def files(tmp_path: Path, samples: list[dict[str, torch.Tensor]]) -> list[Path]:
    def record(sample: dict[str, torch.Tensor]) -> bytes:
        parts = [sample["label"].numpy().tobytes(), b"gap"]
        return b"".join([*parts, sample["x"].numpy().tobytes(), sample["words"].numpy().tobytes()])

    paths = [tmp_path / "day_0.bin", tmp_path / "day_1.bin"]
    for path, part in zip(paths, (samples[:25], samples[25:]), strict=True):
        path.write_bytes(b"header:)" + b"".join(map(record, part)))
    return paths


@pytest.mark.parametrize("access", ["by_size", "direct", "buffered"])
def test_records_are_samples(
    files: list[Path], samples: list[dict[str, torch.Tensor]], access: str
) -> None:
    records = trireme.open_fixed_records(files, FIELDS, header_bytes=8, access=access)
    assert len(records) == 40
    for mine, expected in zip(records, samples, strict=True):
        assert mine.keys() == expected.keys()
        assert all(torch.equal(mine[name], expected[name]) for name in expected)
        assert all(mine[name].dtype == expected[name].dtype for name in expected)
    assert torch.equal(records[-1]["words"], samples[39]["words"])
    assert records.reading
    with pytest.raises(trireme.Error, match="40"):
        records[40]


def test_a_session_reads_them(files: list[Path], samples: list[dict[str, torch.Tensor]]) -> None:
    def loss(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        features = torch.cat([batch["x"], batch["words"] / 1600.0], 1)
        return torch.nn.functional.cross_entropy(model(features), batch["label"].long())

    def train(data: FixedRecords | dict[str, torch.Tensor]) -> list[float]:
        torch.manual_seed(2)
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        session = trireme.Session(
            model, loss, data, plan="even", batch_size=8, microbatch_size=2, steps=6
        )
        return [report.loss for report in session]

    whole = {name: torch.stack([sample[name] for sample in samples]) for name in samples[0]}
    records = trireme.open_fixed_records(files, FIELDS, header_bytes=8, access="direct")
    assert train(records) == train(whole)


def test_what_does_not_fit_is_refused(files: list[Path]) -> None:
    with pytest.raises(trireme.Error, match="day_0.bin"):
        trireme.open_fixed_records(files, FIELDS)
    with pytest.raises(trireme.Error, match="'by_size', 'direct' or 'buffered', not 'fast'"):
        trireme.open_fixed_records(files, FIELDS, header_bytes=8, access="fast")
    with pytest.raises(trireme.Error, match="invalid argument"):
        trireme.open_fixed_records([], FIELDS)
