"""torch.distributed by Trireme: ``import trireme.torch`` registers the backend ``trireme``.

    import torch.distributed as dist
    import trireme.torch

    dist.init_process_group("trireme")  # or "cpu:trireme,cuda:nccl"

Everything of ``torch.distributed`` on CPU tensors then goes by Trireme; what is reduced is
combined in an order of ranks alone. Errors are ``torch.distributed.DistBackendError``, with the
rank, the operation and the line that called it.
"""

from trireme.torch.ddp import register_ddp_hook
from trireme.torch.registration import register

__all__ = ["register", "register_ddp_hook"]

register("trireme")
