"""Two trainings of two stages, one after the other, whose samples a data set makes, on two ranks, and R beside them
that read. Rank 0 prints losses, digests of the weights and how many samples each rank has made.

reader_program.py R FOLDER
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.pop("OMP_NUM_THREADS", None)  # a session says how many threads torch has

import torch

import trireme

READERS, FOLDER = int(sys.argv[1]), Path(sys.argv[2])
trireme.init(ranks=2 + READERS)


class Numbers(torch.utils.data.Dataset):
    """64 samples; notes which rank makes one."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        with (FOLDER / str(trireme.rank())).open("ab") as made:
            made.write(b".")
        x = torch.randn(8, generator=torch.Generator().manual_seed(index))
        noise = torch.randn(100_000, generator=torch.Generator().manual_seed(index))
        return {"x": x + noise.sum() / 1000, "y": x.sum().sign()}  # a sum that threads share


def loss(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return (model(batch["x"])[:, 0] - batch["y"]).square().mean()


def train() -> dict[str, Any]:
    """What came of it; nothing on a rank that reads."""
    from training import digest

    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    session = trireme.Session(
        model, loss, Numbers(), evaluation=Numbers(), reader_ranks=READERS, stages=2, plan="even",
        batch_size=16, microbatch_size=4, steps=5,
    )  # fmt: skip
    losses = [report.loss for report in session]
    end = session.finish()
    trireme.init().barrier()  # readers come here, too
    if session.is_reader:
        assert losses == []
        try:
            session.step()
        except trireme.Error as error:
            assert "reads samples for those that train" in str(error), error  # noqa: PT017
        else:
            raise AssertionError("a reader has done a step")
        return {}
    assert not READERS or trireme.rank() < 2
    assert end.evaluation is not None
    weights = digest(session.weights())
    return {"losses": losses, "evaluation": end.evaluation.total, "weights": weights}


def main() -> None:
    found: dict[str, Any] = {"first": train(), "second": train()}
    if trireme.rank() == 0:
        found["made"] = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
        print(json.dumps(found))


main()
