"""A training of two stages whose samples a data set makes, on two ranks, and R beside them that read. Rank 0 prints
losses, a digest of the weights and the ranks that have read samples.

reader_program.py R FOLDER
"""

import json
import sys
from pathlib import Path

import torch

import trireme

READERS, FOLDER = int(sys.argv[1]), Path(sys.argv[2])
trireme.init(ranks=2 + READERS)


class Numbers(torch.utils.data.Dataset):
    """64 samples; notes which rank has made one."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        (FOLDER / f"read-by-{trireme.rank()}").touch()
        x = torch.randn(8, generator=torch.Generator().manual_seed(index))
        noise = torch.randn(100_000, generator=torch.Generator().manual_seed(index))
        return {"x": x + noise.sum() / 1000, "y": x.sum().sign()}  # a sum that threads share


def loss(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return (model(batch["x"])[:, 0] - batch["y"]).square().mean()


def main() -> None:
    from training import digest

    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    session = trireme.Session(
        model, loss, Numbers(), evaluation=Numbers(), reader_ranks=READERS, stages=2, plan="even",
        batch_size=16, microbatch_size=4, steps=5,
    )  # fmt: skip
    for path in FOLDER.glob("read-by-*"):  # the form of a sample is of every rank's own
        path.unlink(missing_ok=True)
    trireme.init().barrier()
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
        return
    assert not READERS or trireme.rank() < 2
    weights = session.weights()
    if trireme.rank() == 0:
        print(
            json.dumps({
                "losses": losses,
                "evaluation": end.evaluation.total,
                "weights": digest(weights),
                "read": sorted(int(path.name[8:]) for path in FOLDER.glob("read-by-*")),
            })
        )  # fmt: skip


main()
