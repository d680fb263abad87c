"""torch.distributed over Trireme's wire: ``import trireme.torch`` registers the backend ``trireme``.

    import torch.distributed as dist
    import trireme.torch

    dist.init_process_group("trireme")  # or "cpu:trireme,cuda:nccl"

Everything of ``torch.distributed`` on CPU tensors then goes by Trireme; reductions are combined in an
order that depends on the ranks alone. Errors are ``torch.distributed.DistBackendError``, with rank,
operation and the line that called it.
"""

from trireme.torch.ddp import register_ddp_hook
from trireme.torch.registration import register

__all__ = ["register", "register_ddp_hook"]

register("trireme")
