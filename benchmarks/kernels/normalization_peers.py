"""Peers of the normalisations."""

from __future__ import annotations

from registry import Inputs, Outputs, Peer, peer


@peer("bn_add_relu", "torch")
def bn_add_relu_torch(inputs: Inputs, threads: int) -> Peer:
    """Batch norm, then in place what needs no copy."""
    import torch

    torch.set_num_threads(threads)
    is_last = inputs.options["channels_last"] == "1"

    def as_image(name: str) -> torch.Tensor:
        tensor = torch.from_numpy(inputs.tensors[name])
        return tensor.permute(0, 3, 1, 2) if is_last else tensor

    x, residual = as_image("x").requires_grad_(), as_image("residual").requires_grad_()
    gradient_y = as_image("gradient_y")
    gamma, beta = (
        torch.from_numpy(inputs.tensors[name]).requires_grad_() for name in ("gamma", "beta")
    )

    def back(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.permute(0, 2, 3, 1) if is_last else tensor

    def run() -> Outputs:
        y = torch.nn.functional.batch_norm(x, None, None, gamma, beta, training=True)
        y = y.add_(residual).relu_()
        gradients = torch.autograd.grad(y, (x, residual, gamma, beta), gradient_y)
        return {
            "y": back(y.detach()),
            "gradient_x": back(gradients[0]),
            "gradient_residual": back(gradients[1]),
            "gradient_gamma": gradients[2],
            "gradient_beta": gradients[3],
        }

    return Peer(f"torch {torch.__version__}", run)


@peer("instance_norm", "torch")
def instance_norm_torch(inputs: Inputs, threads: int) -> Peer:
    """Instance norm, then ReLU in place."""
    import torch

    torch.set_num_threads(threads)
    is_last = inputs.options["channels_last"] == "1"

    def as_volume(name: str) -> torch.Tensor:
        tensor = torch.from_numpy(inputs.tensors[name])
        return tensor.movedim(-1, 1) if is_last else tensor

    def back(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.movedim(1, -1) if is_last else tensor

    x, gradient_y = as_volume("x").requires_grad_(), as_volume("gradient_y")
    gamma, beta = (
        torch.from_numpy(inputs.tensors[name]).requires_grad_() for name in ("gamma", "beta")
    )

    def run() -> Outputs:
        y = torch.nn.functional.instance_norm(x, weight=gamma, bias=beta).relu_()
        gradients = torch.autograd.grad(y, (x, gamma, beta), gradient_y)
        return {
            "y": back(y.detach()),
            "gradient_x": back(gradients[0]),
            "gradient_gamma": gradients[1],
            "gradient_beta": gradients[2],
        }

    return Peer(f"torch {torch.__version__}", run)
