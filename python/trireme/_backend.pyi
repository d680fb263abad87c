"""The backend of torch.distributed, compiled from python/backend."""

import torch
from torch._C._distributed_c10d import Backend as C10dBackend
from torch.distributed import Store

class World:
    """Connections to the other ranks of a job, which its process groups share."""

    def __init__(self, store: Store, rank: int, size: int, timeout_s: float) -> None:
        """Connects to all ranks through what rank 0 says in the store. Blocks.

        Raises:
            torch.distributed.DistBackendError: Ranks are missing at the end of the timeout.
        """
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def is_open(self) -> bool:
        """Whether a group uses it, or may begin to."""
    @property
    def is_own(self) -> bool:
        """Whether this process has made it, and was not forked from the one that has."""

class Backend(C10dBackend):
    """A process group of these ranks."""

    def __init__(
        self,
        name: str,
        store: Store,
        world: World,
        ranks: list[int],
        group_name: str,
        timeout_s: float,
    ) -> None: ...
    def close(self) -> None:
        """Leaves the group, and waits a second for the others at most."""

def register_ddp_hook(reducer: torch.distributed.Reducer, backend: Backend, num_lanes: int) -> None:
    """Makes Trireme's the hook of a DDP model's reducer; 0 lanes: they have no order."""
