"""Runs a function as several ranks, in processes forked from the test: torch is loaded once."""

import multiprocessing
import os
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import torch
import torch.distributed as dist

import trireme.torch  # noqa: F401  registers the backend

_FORK = multiprocessing.get_context("fork")


class RankFailed(AssertionError):
    """A rank ended with an exception, whose text this has."""


def soon() -> float:
    """Seconds within which ranks have to end: 2 where nothing else runs, more where others share the cores."""
    return 2 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def run_ranks(
    num_ranks: int,
    body: Callable[..., Any],
    *args: object,
    backend: str = "trireme",
    timeout_s: float = 120,
) -> list[Any]:
    """Runs ``body(*args)`` in ``num_ranks`` processes with a default process group.

    Returns:
        What each rank returned, by rank; ``None`` of one that was killed.

    Raises:
        RankFailed: A rank raised an exception, or had not ended ``timeout_s`` after the start.
    """
    with tempfile.TemporaryDirectory() as folder:
        processes, pipes = [], []
        for rank in range(num_ranks):
            ours, theirs = _FORK.Pipe(duplex=False)
            process = _FORK.Process(
                target=_run,
                args=(theirs, f"{folder}/store", rank, num_ranks, backend, timeout_s, body, args),
            )
            process.start()
            theirs.close()
            processes.append(process)
            pipes.append(ours)
        try:
            return [_result(rank, pipe, timeout_s) for rank, pipe in enumerate(pipes)]
        finally:
            for process in processes:
                process.join(5)
                if process.is_alive():
                    process.kill()
                    process.join()


def _run(
    pipe: Connection,
    store: str,
    rank: int,
    num_ranks: int,
    backend: str,
    timeout_s: float,
    body: Callable[..., Any],
    args: tuple[object, ...],
) -> None:
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(num_ranks))
    try:
        dist.init_process_group(
            backend,
            store=dist.FileStore(store, num_ranks),
            rank=rank,
            world_size=num_ranks,
            timeout=timedelta(seconds=timeout_s),
        )
        result = body(*args)
        if dist.is_initialized():
            dist.destroy_process_group()
        pipe.send((True, result))
    except BaseException:  # noqa: BLE001  it is reported, and ends the process
        pipe.send((False, traceback.format_exc()))
    pipe.close()
    os._exit(0)


def _result(rank: int, pipe: Connection, timeout_s: float) -> Any:  # noqa: ANN401  of any body
    if not pipe.poll(timeout_s):
        raise RankFailed(f"rank {rank} has not ended within {timeout_s} s")
    try:
        ended_well, result = pipe.recv()
    except EOFError:  # it was killed
        return None
    if not ended_well:
        raise RankFailed(f"rank {rank}:\n{result}")
    return result
