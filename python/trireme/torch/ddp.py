"""How DistributedDataParallel averages gradients by Trireme."""

import torch
from torch.nn.parallel import DistributedDataParallel

from trireme import _backend


def register_ddp_hook(
    model: DistributedDataParallel, *, deterministic: bool = False, lanes: int | None = None
) -> None:
    """Averages the gradients of a DDP model in place, in memory that the ranks of a host share.

    With ``deterministic=True`` the gradients of a global batch have the same bits on 1, 2, 4, ...
    ranks. The batch is cut into ``lanes`` microbatches of one size, the same for any number of
    ranks; rank ``r`` of ``R`` runs forward and backward of its ``lanes / R``, those from
    ``r * lanes / R`` on, each with the mean loss of its microbatch, and after the last one holds
    the mean of all lanes, added in an order of lanes alone. Before that gradients are zeros::

        register_ddp_hook(model, deterministic=True, lanes=4)
        optimizer.zero_grad()
        for microbatch in mine:  # 4 on one rank, 2 on each of two
            loss_of(model(microbatch)).backward()
        optimizer.step()

    Args:
        model: On CPUs, of f32 or f64 parameters where it is deterministic; its process group is
            of the backend ``trireme``, and it has no other hook.
        deterministic: Add lanes in their order.
        lanes: Microbatches of the global batch: 1, 2, 4, ... times the number of ranks. As many
            as ranks where it is not given.

    Raises:
        ValueError: The model's process group, parameters or lanes are others.
    """
    backend = model.process_group._get_backend(torch.device("cpu"))
    if not isinstance(backend, _backend.Backend):
        raise ValueError(
            f"the model's process group is of {type(backend).__name__}; expected one of the backend"
            " 'trireme': init_process_group('trireme'), or new_group(backend='trireme')"
        )
    if lanes is not None and not deterministic:
        raise ValueError("lanes are of deterministic=True alone; give both, or neither")
    parameters = [p for p in model.parameters() if p.requires_grad]
    if any(p.device.type != "cpu" for p in parameters):
        raise ValueError("the model is not on the CPU; on GPUs DDP goes by NCCL, without this hook")
    if deterministic and any(p.dtype not in (torch.float32, torch.float64) for p in parameters):
        raise ValueError("deterministic gradients are of f32 or f64; convert the other parameters")
    num_lanes = (lanes or backend.size()) if deterministic else 0
    _backend.register_ddp_hook(model.reducer, backend, num_lanes)
    model.logger._set_comm_hook_name("trireme")
