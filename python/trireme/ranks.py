"""The ranks of a run, this process among them, and their places in pipelines and replicas."""

import atexit
import os
import sys
import traceback
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol

from trireme import _core
from trireme._core import World
from trireme.config import Config, parse

_world: World | None = None
_config = Config()
_open: "weakref.WeakSet[Any]" = weakref.WeakSet()


def init(
    config: Mapping[str, Any] | None = None, *, ranks: int | None = None, timeout_s: int = 300
) -> World:
    """Meets the other ranks; later calls return the same world. A process of its own gets a new one each time.

    Under torchrun, mpirun, srun or `trireme launch` this process is one of theirs. Else, with `ranks` above 1,
    it starts its own command line that many times on this machine, waits, and exits as they do: what follows
    the call is run by the ranks alone.

    config     for DistributedModel: {"pipeline_parallel_degree": 2, "microbatches": 4, ...}; see trireme.config.
    ranks      how many there are to be; checked against the launcher's number. None: as many as there are.
    timeout_s  seconds of every wait for another rank; then an Error that names it.
    """
    global _config, _world
    if config is not None:
        _config = parse(config)
    if ranks is not None and ranks > 1 and not _core.is_rank():
        sys.exit(_core.start_ranks(_command_line(), ranks))
    if _world is None and _core.is_rank():
        _world = World(timeout_s)
        _tell_of_failures(_world)
        atexit.register(shutdown)
    world = _world or World(timeout_s)  # alone, what fails in one leaves the next as it is
    if ranks is not None and ranks != world.size:
        raise ValueError(
            f"ranks={ranks}, and {world.size} were started; leave `ranks` out, or start as many"
        )
    if world.size % _config.stages != 0:
        raise ValueError(
            f"pipeline_parallel_degree={_config.stages} does not divide the {world.size} ranks that were started"
        )
    return world


def config() -> Config:
    """What `init` was given."""
    return _config


def rank() -> int:
    return _place()[0]


def size() -> int:
    return _place()[1]


def local_rank() -> int:
    """Among the ranks of this host, as the launcher counts them; 0 in a process of its own."""
    if not _core.is_rank():
        return 0
    names = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
    for name in names:
        if os.environ.get(name):
            return int(os.environ[name])
    raise RuntimeError(f"the launcher has set none of {', '.join(names)}; set LOCAL_RANK")


def pp_size() -> int:
    """Stages of the pipeline."""
    return _config.stages


def rdp_size() -> int:
    """Replicas of the pipeline."""
    return size() // _config.stages


def pp_rank() -> int:
    """This rank's stage."""
    return rank() % pp_size() if _config.placement == "cluster" else rank() // rdp_size()


def rdp_rank() -> int:
    """This rank's replica."""
    return rank() // pp_size() if _config.placement == "cluster" else rank() % rdp_size()


# Without sharded tensors a replica of the model is a pipeline, and data parallel ranks are the replicas.
mp_size, mp_rank = pp_size, pp_rank
dp_size, dp_rank = rdp_size, rdp_rank


def tp_size() -> int:
    """Shards of a tensor: one."""
    return 1


def tp_rank() -> int:
    return 0


def get_pp_group() -> list[int]:
    """The ranks of this replica, by stage."""
    return [_rank_of(stage, rdp_rank()) for stage in range(pp_size())]


def get_rdp_group() -> list[int]:
    """The ranks of this stage, by replica."""
    return [_rank_of(pp_rank(), replica) for replica in range(rdp_size())]


get_mp_group, get_dp_group = get_pp_group, get_rdp_group


def get_world_group() -> list[int]:
    return list(range(size()))


def barrier() -> None:
    """Waits for all ranks."""
    init().barrier()


def shutdown() -> None:
    """Leaves the other ranks, once all of them do, and closes what is open here. A program's end does it, too: this is
    for workers of a pool, which outlive a training. `init` then meets ranks anew."""
    global _world
    for what in list(_open):
        what.close()
    world, _world = _world, None
    atexit.unregister(shutdown)
    if world is not None:
        world.shutdown()


class Closable(Protocol):
    def close(self) -> None: ...


def at_end(what: Closable) -> None:
    """Closes it, if it is still there, before the ranks part."""
    _open.add(what)


def _rank_of(stage: int, replica: int) -> int:
    if _config.placement == "cluster":
        return replica * pp_size() + stage
    return stage * rdp_size() + replica


def _place() -> tuple[int, int]:
    world = init()
    return world.rank, world.size


def _command_line() -> list[str]:
    if hasattr(sys, "ps1") or not sys.argv[0] or "ipykernel" in sys.modules:
        raise RuntimeError(
            "ranks are started by running this program's command line again, and here is none: "
            "write a script, or start the ranks by torchrun or `trireme launch`"
        )
    return [sys.executable, *sys.orig_argv[1:]]


def _tell_of_failures(world: World) -> None:
    """An exception that ends this process becomes that of the ranks that wait for it."""
    before = sys.excepthook

    def tell(
        kind: type[BaseException], failure: BaseException, trace: TracebackType | None
    ) -> None:
        frames = traceback.extract_tb(trace)
        place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
        if _world is world:
            world.fail(f"{kind.__name__}: {failure}{place}")
            atexit.unregister(shutdown)  # no goodbye: the others end, too
        before(kind, failure, trace)

    sys.excepthook = tell
