"""Checkpoints of a DistributedModel and its optimizer, for any number of stages and replicas."""

from pathlib import Path
from typing import Any

import torch

from trireme import ranks
from trireme.distributed import DistributedModel, model_in_use
from trireme.optimizer import DistributedOptimizer

_NEWEST = "newest"


def save_checkpoint(
    path: str | Path,
    tag: str,
    *,
    partial: bool = True,
    model: DistributedModel | None = None,
    optimizer: DistributedOptimizer | None = None,
    user_content: Any = None,
    num_kept_partial_checkpoints: int | None = None,
) -> None:
    """Writes a checkpoint after an update. Every rank calls it; it is there when the call returns.

    partial   PATH/TAG_partial: a file of each stage, of parameters and the optimizer's state by name, and what the
              user adds; PATH/newest names the last one. Not: PATH/TAG, the whole model's state in one file.
    """
    folder, model = Path(path), model or model_in_use()
    world = ranks.init()
    if not partial:
        state = model.state_dict(gather_to_rank0=True)
        if world.rank == 0:
            folder.mkdir(parents=True, exist_ok=True)
            _save({"model": state, "user_content": user_content}, folder / tag)
        world.barrier()
        return
    written = folder / f"{tag}_partial"
    written.mkdir(parents=True, exist_ok=True)
    if ranks.rdp_rank() == 0:
        content = {
            "model": model.local_state_dict(),
            "optimizer": optimizer.local_state_dict() if optimizer else None,
            "stages": ranks.pp_size(),
        }
        _save(content, written / f"stage_{ranks.pp_rank()}.pt")
    if world.rank == 0:
        _save(user_content, written / "user_content.pt")
    world.barrier()
    if world.rank == 0:
        _write(folder / _NEWEST, written.name)
        if num_kept_partial_checkpoints is not None:
            _drop_old(folder, num_kept_partial_checkpoints)
    world.barrier()


def resume_from_checkpoint(
    path: str | Path,
    tag: str | None = None,
    *,
    partial: bool = True,
    model: DistributedModel | None = None,
    optimizer: DistributedOptimizer | None = None,
    strict: bool = True,
    load_optimizer: bool = True,
) -> Any:
    """Loads what `save_checkpoint` wrote, by whatever ranks; before the first step or between steps. Returns the
    user's content.

    tag   None: the newest partial one.
    """
    folder, model = Path(path), model or model_in_use()
    if not partial:
        if tag is None:
            raise ValueError(
                "a full checkpoint is named by its tag; only partial ones have a newest"
            )
        content = torch.load(folder / tag, weights_only=False)
        model.load_state_dict(content["model"], strict=strict)
        return content["user_content"]
    name = f"{tag}_partial" if tag is not None else (folder / _NEWEST).read_text().strip()
    found: dict[str, Any] = {}
    state: dict[str, Any] = {"state": {}, "groups": None}
    for part in _parts_of(folder / name):
        content = torch.load(part, weights_only=False)
        found.update(content["model"])
        if content["optimizer"]:
            state["groups"] = content["optimizer"]["groups"]
            state["state"].update(content["optimizer"]["state"])
    model.load_state_dict(found, strict=strict)
    if load_optimizer and optimizer is not None:
        if state["groups"] is None:
            raise ValueError(
                f"{folder / name} was saved without an optimizer; pass load_optimizer=False"
            )
        optimizer.load_local_state_dict(state)
    return torch.load(folder / name / "user_content.pt", weights_only=False)


def _parts_of(folder: Path) -> list[Path]:
    first = folder / "stage_0.pt"
    if not first.exists():
        raise FileNotFoundError(
            f"{first} is not there: no partial checkpoint, or one that was not finished"
        )
    count = torch.load(first, weights_only=False, mmap=True)["stages"]
    return [folder / f"stage_{stage}.pt" for stage in range(count)]


def _save(content: Any, path: Path) -> None:
    """Whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    torch.save(content, partial)
    partial.replace(path)


def _write(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text + "\n")
    partial.replace(path)


def _drop_old(folder: Path, keep: int) -> None:
    made = sorted(folder.glob("*_partial"), key=lambda p: p.stat().st_mtime)
    for old in made[: max(len(made) - keep, 0)]:
        for part in old.iterdir():
            part.unlink()
        old.rmdir()
