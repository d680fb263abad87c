"""Optimizers in one or two passes over memory, with the interface of torch.optim.

    optimizer = trireme.optim.Lamb(model.parameters(), lr=2e-3, weight_decay=0.01)

Parameters are dense f32 on the CPU, for SGD and AdamW also f64. Each has its own step; tensors are updated one after
the other on torch's threads, which change no bit. State has torch's names, so AdamW and SGD take the state dicts of
torch's. Formulas, rounding, sources and cost: trireme/kernels/optimizer.
"""

from trireme.optim.adafactor import Adafactor
from trireme.optim.elementwise import SGD, AdamW
from trireme.optim.layerwise import Lamb, Lars, NovoGrad

__all__ = ["SGD", "Adafactor", "AdamW", "Lamb", "Lars", "NovoGrad"]
