"""What people run on torch.distributed, small: each returns this rank's losses, which a backend
does not change but for the order in which numbers are added.

    torchrun --nproc-per-node 2 workloads.py trireme LOSSES.json
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import Tensor, nn
from torch.distributed.algorithms.join import Join
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

NUM_STEPS = 4
WIDTH = 24


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.relu(self.up(x)))


def make_model(num_blocks: int = 3) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(*(Block() for _ in range(num_blocks)))


def batch(step: int, rank: int | None = None) -> Tensor:
    """Of this rank, or of a given one."""
    owner = dist.get_rank() if rank is None else rank
    return torch.randn(8, WIDTH, generator=torch.Generator().manual_seed(100 * step + owner))


def train(
    model: Callable[[Tensor], Tensor], optimizer: torch.optim.Optimizer, num_steps: int = NUM_STEPS
) -> list[float]:
    losses = []
    for step in range(num_steps):
        optimizer.zero_grad()
        loss = model(batch(step)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def ddp() -> list[float]:
    model = DistributedDataParallel(make_model(), bucket_cap_mb=0.01)
    return train(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))


def ddp_with_uneven_inputs() -> list[float]:
    """A rank has fewer batches than the others."""
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Join([model]):
        return train(model, optimizer, NUM_STEPS - (1 if dist.get_rank() == 0 else 0))


def power_sgd() -> list[float]:
    """Its hook waits for collectives in callbacks of futures. Of one bucket: on CPUs those of
    several call collectives in no fixed order, on any backend."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as hook

    model = DistributedDataParallel(make_model())
    state = hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
    model.register_comm_hook(state, hook.powerSGD_hook)
    return train(model, torch.optim.SGD(model.parameters(), 0.05))


def fsdp2() -> list[float]:
    model = make_model()
    for block in model:
        fully_shard(block)
    fully_shard(model)
    return train(model, torch.optim.Adam(model.parameters(), 0.01))


def fsdp2_mixed() -> list[float]:
    """bf16 gradients are scaled beforehand: PREMUL_SUM and the like."""
    from torch.distributed.fsdp import MixedPrecisionPolicy

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = make_model()
    for block in model:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    return train(lambda x: model(x.bfloat16()).float(), torch.optim.SGD(model.parameters(), 0.05))


def hsdp() -> list[float]:
    """Sharded within pairs of ranks, replicated over them; on two ranks, replicated."""
    num_shards = 2 if dist.get_world_size() == 4 else 1
    num_replicas = dist.get_world_size() // num_shards
    mesh = init_device_mesh("cpu", (num_replicas, num_shards), mesh_dim_names=("dp", "shard"))
    model = make_model()
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return train(model, torch.optim.SGD(model.parameters(), 0.1))


def tensor_parallel() -> list[float]:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = make_model()
    for block in model:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for step in range(NUM_STEPS):
        optimizer.zero_grad()
        loss = model(batch(step, 0)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def dtensor() -> list[float]:
    """Redistributions: all_gather, all_to_all, reduce_scatter, broadcast, scatter."""
    size = dist.get_world_size()
    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(float(6 * size * 4 * size)).reshape(6 * size, 4 * size)
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    columns = rows.redistribute(mesh, [Shard(1)])
    product = (columns.t() @ columns.redistribute(mesh, [Replicate()])).redistribute(
        mesh, [Replicate()]
    )
    partial = DTensor.from_local(torch.ones(size, 2) * dist.get_rank(), mesh, run_check=False)
    return [
        columns.to_local().sum().item(),
        product.to_local().sum().item() / whole.sum().item(),
        rows.full_tensor().sum().item(),
        partial.full_tensor().sum().item(),
    ]


def zero() -> list[float]:
    model = DistributedDataParallel(make_model())
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.Adam, lr=0.01
    )
    losses = train(model, optimizer)
    optimizer.consolidate_state_dict(to=0)
    if dist.get_rank() == 0:
        losses.append(float(len(optimizer.state_dict()["state"])))
    return losses


def distributed_checkpoint() -> list[float]:
    """A sharded model, saved, made anew, loaded, and trained on."""
    folder: list[Any] = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, 0)
    model = make_model()
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = train(model, optimizer)
    checkpoint.save({"model": model.state_dict()}, checkpoint_id=folder[0])
    torch.manual_seed(2)
    again = nn.Sequential(*(Block() for _ in range(3)))
    fully_shard(again)
    state = {"model": again.state_dict()}
    checkpoint.load(state, checkpoint_id=folder[0])
    again.load_state_dict(state["model"])
    return losses + train(again, torch.optim.SGD(again.parameters(), 0.1))


def pipelining() -> list[float]:
    rank, size = dist.get_rank(), dist.get_world_size()
    blocks = make_model(size)
    stage = PipelineStage(blocks[rank], rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(
        stage, n_microbatches=2 * size, loss_fn=lambda y, target: (y - target).pow(2).mean()
    )
    optimizer = torch.optim.SGD(blocks[rank].parameters(), 0.1)
    losses: list[float] = []
    for step in range(NUM_STEPS):
        optimizer.zero_grad()
        inputs = torch.cat([batch(step, i) for i in range(size)])
        of_step: list[Tensor] = []
        if rank == 0:
            schedule.step(inputs)
        elif rank == size - 1:
            schedule.step(target=inputs.flip(0), losses=of_step)
        else:
            schedule.step()
        optimizer.step()
        losses.extend(loss.item() for loss in of_step)
    return losses


WORKLOADS: dict[str, Callable[[], list[float]]] = {
    workload.__name__: workload
    for workload in (
        ddp,
        ddp_with_uneven_inputs,
        power_sgd,
        fsdp2,
        fsdp2_mixed,
        hsdp,
        tensor_parallel,
        dtensor,
        zero,
        distributed_checkpoint,
        pipelining,
    )
}


def run_all() -> dict[str, list[float]]:
    return {name: workload() for name, workload in WORKLOADS.items()}


def main() -> None:
    import trireme.torch  # noqa: F401  registers the backend

    backend, path = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    losses: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(losses, run_all())
    if dist.get_rank() == 0:
        Path(path).write_text(json.dumps(losses))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
