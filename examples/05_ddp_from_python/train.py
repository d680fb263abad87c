"""DistributedDataParallel on Trireme: two lines differ from a program on Gloo.

torchrun --nproc-per-node 2 train.py
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import trireme.torch  # 1: registers the backend


def main() -> None:
    dist.init_process_group("trireme")  # 2: its name
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(16, 1))
    trireme.torch.register_ddp_hook(model)  # optional: gradients are summed in shared memory
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(1 + dist.get_rank())
    for step in range(50):
        x = torch.randn(32, 16)
        loss = (model(x)[:, 0] - x.sum(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 10 == 9:
            print(f"step {step} loss {loss.item():.4f}")
    dist.destroy_process_group()


main()
