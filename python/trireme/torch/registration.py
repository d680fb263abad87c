"""How torch.distributed makes process groups of the backend."""

import atexit
import weakref
from datetime import timedelta
from typing import Protocol

import torch.distributed as dist

from trireme import _backend

# The connections of the default group, which the groups that follow use too; and all groups that
# may be open, for the end of the process. torch has the like in torch.distributed.distributed_c10d.
_world: _backend.World | None = None
_backends: "weakref.WeakSet[_backend.Backend]" = weakref.WeakSet()


class _Options(Protocol):
    """What torch tells a backend of a group: its ``_DistributedBackendOptions``."""

    store: dist.Store
    group_rank: int
    group_size: int
    timeout: timedelta | float
    group_id: str
    global_ranks_in_group: list[int]


def register(name: str) -> None:
    """Registers the backend for CPU tensors under a name.

    Args:
        name: What ``init_process_group`` is given; a name that torch has, as ``gloo``, is taken
            over in this process.
    """

    def make(options: _Options, _: object) -> _backend.Backend:
        return _make_backend(name, options)

    dist.Backend.register_backend(name, make, extended_api=True, devices=["cpu"])


def _make_backend(name: str, options: _Options) -> _backend.Backend:
    """A process group's backend; called by torch on all ranks of the group.

    Args:
        name: The name of the backend.
        options: Of the group; no ranks in it are all of the default group.

    Raises:
        torch.distributed.DistBackendError: Ranks are missing at the end of the timeout.
    """
    global _world
    timeout_s = _seconds(options.timeout)
    members = list(options.global_ranks_in_group)
    is_default = not members
    if is_default or _world is None or not (_world.is_open and _world.is_own):
        world = _backend.World(
            store=options.store,
            rank=options.group_rank,
            size=options.group_size,
            timeout_s=timeout_s,
        )
        if is_default:
            _world = world
        members = list(range(options.group_size))
    else:
        world = _world
    backend = _backend.Backend(
        name=name,
        store=options.store,
        world=world,
        ranks=members,
        group_name=options.group_id,
        timeout_s=timeout_s,
    )
    _backends.add(backend)
    return backend


def _seconds(timeout: timedelta | float) -> float:
    """A timeout as torch gives it to backends."""
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def _close_all() -> None:
    """At the end of the process: says goodbye for groups that nobody has destroyed."""
    for backend in list(_backends):
        backend.close()


atexit.register(_close_all)
