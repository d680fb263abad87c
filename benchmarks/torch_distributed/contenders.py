"""The backends that are compared, as groups of the same ranks, and how they are timed in turn."""

import argparse
import fcntl
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
import torch.distributed as dist

import trireme.torch  # noqa: F401  registers the backend

Group: TypeAlias = dist.ProcessGroup


@dataclass(frozen=True)
class Contenders:
    """Groups of all ranks by name of their backend; ``free`` moves nothing and takes no time."""

    groups: dict[str, Group]

    @property
    def names(self) -> list[str]:
        return list(self.groups)


def make_contenders(with_free: bool = False) -> Contenders:
    groups = {"trireme": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    if with_free:
        import torch.testing._internal.distributed.fake_pg  # noqa: F401  registers `fake`

        groups["free"] = dist.new_group(backend="fake")
    return Contenders({name: group for name, group in groups.items() if group is not None})


@dataclass(frozen=True)
class Timing:
    """How calls are timed."""

    num_rounds: int
    quantile: float = 0.5  # of the rounds' times; less on a machine that others use


def alternate(
    timed: Mapping[str, Callable[[], object]], timing: Timing, repeats: int
) -> dict[str, float]:
    """Median over rounds of the time of one call in milliseconds, of the slowest rank; in each
    round all contenders one after another, after a barrier each."""
    times: dict[str, list[float]] = {name: [] for name in timed}
    for call in timed.values():
        call()
    for turn in range(timing.num_rounds):
        names = list(timed)
        for name in names if turn % 2 == 0 else reversed(names):
            dist.barrier()
            start = time.perf_counter()
            for _ in range(repeats):
                timed[name]()
            own = torch.tensor((time.perf_counter() - start) * 1e3 / repeats, dtype=torch.float64)
            dist.all_reduce(own, dist.ReduceOp.MAX)
            times[name].append(own.item())
    return {
        name: torch.tensor(values, dtype=torch.float64).quantile(timing.quantile).item()
        for name, values in times.items()
    }


def run_ranks(num_ranks: int, body: Callable[[], None]) -> None:
    """Runs ``body`` in forked ranks; exits where one fails."""
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(num_ranks):
            child = os.fork()
            if child == 0:
                _run_rank(f"{folder}/store", rank, num_ranks, body)
            children.append(child)
        if any([os.waitpid(child, 0)[1] != 0 for child in children]):
            sys.exit("a rank has failed")


def _run_rank(store: str, rank: int, num_ranks: int, body: Callable[[], None]) -> None:
    status = 1
    try:
        torch.set_num_threads(1)
        dist.init_process_group(
            "trireme",
            store=dist.FileStore(store, num_ranks),
            rank=rank,
            world_size=num_ranks,
        )
        body()
        dist.destroy_process_group()
        status = 0
    except BaseException:  # noqa: BLE001  it is printed, and ends the rank
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def parse(description: str, default_ranks: Sequence[int]) -> tuple[list[int], Timing]:
    """The numbers of ranks to compare, and how to time them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--ranks", type=int, nargs="+", default=list(default_ranks))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quantile", type=float, default=0.5, help="of rounds; 0.5: the median")
    arguments = parser.parse_args()
    return arguments.ranks, Timing(arguments.rounds, arguments.quantile)


def take_machine() -> object:
    """One benchmark at a time; prints what else runs. Keep what is returned."""
    lock = open("/tmp/trireme_benchmark.lock", "w")  # noqa: SIM115  it is held until the end
    fcntl.flock(lock, fcntl.LOCK_EX)
    load = os.getloadavg()[0]
    print(f"torch {torch.__version__}, {os.cpu_count()} cores, load before the start {load:.1f}")
    return lock
