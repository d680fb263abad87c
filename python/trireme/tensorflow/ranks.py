"""The ranks of a run, this process among them."""

import atexit
import ctypes
import os
import sys
import traceback
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import tensorflow as tf

from trireme.errors import Error
from trireme.tensorflow.library import GroupOptions, check, wire


@dataclass(frozen=True)
class _World:
    handle: ctypes.c_void_p
    groups: tuple[ctypes.c_void_p, ...]
    rank: int
    size: int
    order: Any
    """A variable that nobody reads: operators take its handle, so that graphs keep them in the program's order."""


_world: _World | None = None


def init(*, timeout_s: int = 300, fusion_mb: int = 32) -> None:
    """Meets the other ranks, as the launcher's environment names them; alone without a launcher. Blocks.

    Calls after the first do nothing. The ranks part when the program ends, or by `shutdown`.

    timeout_s  seconds of every wait for another rank; then an exception that names it.
    fusion_mb  MiB of the buffer in which gradients are fused; the same on all ranks. Speed only.
    Errors     trireme.Error: `timeout`, `invalid argument` for variables that contradict each other, `unavailable`
               under a torchrun that keeps its store to itself (README).
    """
    global _world
    if _world is not None:
        return
    handle = ctypes.c_void_p()
    check(wire().trireme_connect_from_environment(ctypes.byref(handle)))
    names = (b"tensorflow", b"tensorflow.descriptions")
    groups = tuple(_group(handle, name, timeout_s) for name in names)
    problem = wire().trireme_tensorflow_attach(*groups, fusion_mb << 20).decode()
    if problem:
        raise Error(problem)
    with tf.init_scope(), tf.device("CPU:0"):
        order = tf.Variable(0, trainable=False, name="trireme_order")
    number = ctypes.c_int32()
    check(wire().trireme_rank(handle, ctypes.byref(number)))
    rank_here = number.value
    check(wire().trireme_world_size(handle, ctypes.byref(number)))
    _world = _World(handle, groups, rank_here, number.value, order)
    atexit.register(shutdown)
    _tell_of_failures()


def is_initialized() -> bool:
    return _world is not None


def rank() -> int:
    return world().rank


def size() -> int:
    """How many ranks there are."""
    return world().size


def local_rank() -> int:
    """Among the ranks of this host, as the launcher counts them."""
    names = [
        "LOCAL_RANK",
        "TRIREME_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "SLURM_LOCALID",
    ]
    return next((int(os.environ[name]) for name in names if os.environ.get(name)), rank())


def shutdown() -> None:
    """Waits for the operations under way and for all ranks to call it; `init` may follow in a later process only."""
    global _world
    world, _world = _world, None
    atexit.unregister(shutdown)
    if world is None:
        return
    wire().trireme_tensorflow_detach()
    for group in world.groups:
        wire().trireme_group_free(group)
    try:
        check(wire().trireme_shutdown(world.handle))
    finally:
        wire().trireme_world_free(world.handle)


def world() -> _World:
    """RuntimeError before `init`."""
    if _world is None:
        raise RuntimeError("no ranks yet: call trireme.tensorflow.init() first")
    return _world


def _group(handle: ctypes.c_void_p, name: bytes, timeout_s: int) -> ctypes.c_void_p:
    options = GroupOptions()
    check(
        wire().trireme_group_options(ctypes.byref(options), ctypes.c_size_t(ctypes.sizeof(options)))
    )
    options.name, options.deadline_ms = name, timeout_s * 1000
    group = ctypes.c_void_p()
    check(wire().trireme_group_create(handle, ctypes.byref(options), ctypes.byref(group)))
    return group


def _tell_of_failures() -> None:
    """An exception that ends this process becomes that of the ranks that wait for it."""
    before = sys.excepthook

    def tell(
        kind: type[BaseException], failure: BaseException, trace: TracebackType | None
    ) -> None:
        if _world is not None:
            frames = traceback.extract_tb(trace)
            place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
            text = f"{kind.__name__}: {str(failure).splitlines()[0] if str(failure) else ''}{place}"
            wire().trireme_abort(_world.handle, text.encode())
            atexit.unregister(shutdown)  # no goodbye: the others end, too
        before(kind, failure, trace)

    sys.excepthook = tell
