"""The ranks of a run, this process among them."""

import atexit
import os
import sys
import traceback
from types import TracebackType

from trireme import _core
from trireme._core import World

_world: World | None = None


def init(ranks: int | None = None, *, timeout_s: int = 300) -> World:
    """Meets the other ranks; the second call returns the same world. A process of its own gets a new one each time.

    Under torchrun, mpirun, srun or `trireme launch` this process is one of theirs. Else, with `ranks` above 1,
    it starts its own command line that many times on this machine, waits, and exits as they do: what follows
    the call is run by the ranks alone.

    ranks      how many there are to be; checked against the launcher's number. None: as many as there are.
    timeout_s  seconds of every wait for another rank; then an Error that names it.
    """
    global _world
    if _world is None:
        if ranks is not None and ranks > 1 and not is_rank():
            sys.exit(_core.start_ranks(_command_line(), ranks))
        world = World(timeout_s)
        if not is_rank():
            return world  # whatever fails in it leaves the next one alone
        _world = world
        atexit.register(_leave)
        _tell_of_failures(_world)
    if ranks is not None and ranks != _world.size:
        raise ValueError(
            f"ranks={ranks}, and {_world.size} were started; leave `ranks` out, or start as many"
        )
    return _world


def is_rank() -> bool:
    """Whether a launcher has started this process as one of several."""
    names = ("TRIREME_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
    return any(os.environ.get(name) for name in names)


def _command_line() -> list[str]:
    if hasattr(sys, "ps1") or not sys.argv[0] or "ipykernel" in sys.modules:
        raise RuntimeError(
            "ranks are started by running this program's command line again, and here is none: "
            "write a script, or start the ranks by torchrun or `trireme launch`"
        )
    return [sys.executable, *sys.orig_argv[1:]]


def _leave() -> None:
    global _world
    world, _world = _world, None
    if world is not None:
        world.shutdown()


def _tell_of_failures(world: World) -> None:
    """An exception that ends this process becomes that of the ranks that wait for it."""
    before = sys.excepthook

    def tell(
        kind: type[BaseException], failure: BaseException, trace: TracebackType | None
    ) -> None:
        global _world
        last = traceback.extract_tb(trace)[-1] if trace else None
        place = f" ({last.filename}:{last.lineno})" if last else ""
        world.fail(f"{kind.__name__}: {failure}{place}")
        _world = None  # no goodbye: the others end, too
        before(kind, failure, trace)

    sys.excepthook = tell
