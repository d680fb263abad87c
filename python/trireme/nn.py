"""Normalisation fused with what follows it: torch.nn's modules with an addition and ReLU in the same passes. And cross
entropy of rows.

    norm = trireme.nn.BatchNorm2d(256, relu=True)
    y = norm(x, residual)    # relu(batch_norm(x) + residual)

Modules have the parameters and buffers of torch's, so state dicts move between them, and are f32 on the CPU. They pass
torch.compile, torch.export of modules in eval mode, and trireme's recording, each call one node.
Formula, rounding and cost: trireme/kernels/normalization and loss.
"""

import torch

from trireme import libraries

libraries.load("trireme")

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm",
    "cross_entropy",
    "instance_norm",
]


class _BatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """As torch's, then `+ residual`, then ReLU: two passes over memory instead of four, and 1 bit an element kept
    for ReLU.

    relu       whether ReLU is last.
    group_samples  that are normalised by statistics of their own, in training: each so many of the input, from the
               first on; the last group has what is left. 0: all. Running statistics take the groups' mean.
    forward    input f32 [N, C, ...], contiguous or channels last (others are copied); residual of its shape, or None.
    Errors     RuntimeError for other types and shapes, and fewer than 2 elements of a channel in a group.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        relu: bool = False,
        group_samples: int = 0,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.relu = relu
        self.group_samples = group_samples

    def forward(
        self,
        input: torch.Tensor,  # noqa: A002  torch's name
        residual: torch.Tensor | None = None,
    ) -> torch.Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        arguments = (
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.training or self.running_mean is None,
            momentum,
            self.eps,
            residual,
            self.relu,
        )
        if self.group_samples == 0:
            return torch.ops.trireme.batch_norm(*arguments)
        return torch.ops.trireme.batch_norm.grouped(*arguments, self.group_samples)

    def extra_repr(self) -> str:
        groups = f", group_samples={self.group_samples}" if self.group_samples else ""
        return f"{super().extra_repr()}, relu={self.relu}{groups}"


class BatchNorm1d(_BatchNorm, torch.nn.BatchNorm1d):
    __doc__ = _BatchNorm.__doc__


class BatchNorm2d(_BatchNorm, torch.nn.BatchNorm2d):
    __doc__ = _BatchNorm.__doc__


class BatchNorm3d(_BatchNorm, torch.nn.BatchNorm3d):
    __doc__ = _BatchNorm.__doc__


def instance_norm(
    input: torch.Tensor,  # noqa: A002
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    relu: bool = False,
) -> torch.Tensor:
    """Each sample and channel normalised by itself, then ReLU if asked for.

    input          f32 [N, C, ...], contiguous or channels last.
    weight, bias   f32 [C]; None: 1 and 0.
    """
    return torch.ops.trireme.instance_norm(input, weight, bias, eps, relu)


class InstanceNorm(torch.nn.Module):
    """`instance_norm` with a scale and a shift of each channel, of inputs of any number of dimensions."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, affine: bool = False, relu: bool = False
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.relu = relu
        for name, value in (("weight", 1.0), ("bias", 0.0)):
            parameter = torch.nn.Parameter(torch.full((num_features,), value)) if affine else None
            self.register_parameter(name, parameter)

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
        return instance_norm(input, self.weight, self.bias, self.eps, self.relu)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, affine={self.weight is not None}, relu={self.relu}"


# Shapes, for tracers.

Tensors = tuple[torch.Tensor, ...]


def cross_entropy(logits: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """-log softmax(logits)[class] of every row; its backward computes only rows whose gradient is not 0.

    logits   f32 [..., K]; classes i64 [...].
    Returns  f32 [...]: multiply rows that do not count with 0.
    """
    return torch.ops.trireme.cross_entropy(logits, classes)


def _laid_out(input: torch.Tensor) -> tuple[torch.Tensor, bool]:  # noqa: A002
    """What is made like an input in one of the kernel's layouts, and whether channels are last in it."""
    if input.dim() == 2 or input.is_contiguous():
        return torch.empty_like(input, memory_format=torch.contiguous_format), input.dim() == 2
    for dims, form in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if input.dim() == dims and input.is_contiguous(memory_format=form):
            return torch.empty_like(input, memory_format=form), True
    return torch.empty_like(input, memory_format=torch.contiguous_format), False


def _mask_words(input: torch.Tensor, has_channels_last: bool) -> int:  # noqa: A002
    """16-bit words that keep a bit an element, rows apart."""
    spatial = 1
    for side in input.shape[2:]:
        spatial = spatial * side
    samples, channels = input.shape[:2]
    if has_channels_last:
        return samples * spatial * ((channels + 15) // 16)
    return samples * channels * ((spatial + 15) // 16)


@torch.library.register_fake("trireme::_batch_norm")
def _(
    input: torch.Tensor,  # noqa: A002
    weight: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor | None,
    eps: float,
    relu: bool,
    group_samples: int,
) -> Tensors:
    y, has_channels_last = _laid_out(input)
    groups = max(1, -(-input.shape[0] // group_samples)) if group_samples else 1
    mean, variance, inverse = (input.new_empty((groups * input.shape[1],)) for _ in range(3))
    words = _mask_words(input, has_channels_last) if relu else 0
    count = input.new_empty((groups,), dtype=torch.float64)
    return y, mean, variance, inverse, count, input.new_empty((words,), dtype=torch.int16)


@torch.library.register_fake("trireme::_batch_norm_backward")
def _(
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    mean: torch.Tensor,
    inverse_deviation: torch.Tensor,
    count: torch.Tensor,
    mask: torch.Tensor,
    has_residual: bool,
    group_samples: int,
) -> Tensors:
    is_masked = has_residual and mask.numel() > 0
    dresidual = torch.empty_like(x) if is_masked else x.new_empty((0,))
    return torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight), dresidual


@torch.library.register_fake("trireme::_instance_norm")
def _(
    input: torch.Tensor,  # noqa: A002
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float,
    relu: bool,
) -> Tensors:
    y, has_channels_last = _laid_out(input)
    is_apart = has_channels_last and input.dim() > 2
    rows = input.shape[0] * input.shape[1]
    words = _mask_words(input, is_apart) if relu else 0
    counts = input.new_empty((input.shape[0] if is_apart else 1,), dtype=torch.float64)
    mean, inverse = input.new_empty((rows,)), input.new_empty((rows,))
    return y, mean, inverse, counts, input.new_empty((words,), dtype=torch.int16)


@torch.library.register_fake("trireme::_instance_norm_backward")
def _(
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    mean: torch.Tensor,
    inverse_deviation: torch.Tensor,
    counts: torch.Tensor,
    mask: torch.Tensor,
) -> Tensors:
    return torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)


@torch.library.register_fake("trireme::_cross_entropy")
def _(logits: torch.Tensor, classes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    losses = logits.new_empty(classes.shape)
    return losses, torch.empty_like(losses)


@torch.library.register_fake("trireme::_cross_entropy_backward")
def _(
    gradient: torch.Tensor,
    logits: torch.Tensor,
    classes: torch.Tensor,
    log_sums: torch.Tensor,
) -> torch.Tensor:
    return logits.new_empty(logits.shape)
