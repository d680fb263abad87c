"""The shared libraries of the engine and the packs: where they are, and how their operators come to torch."""

from functools import cache
from pathlib import Path

from trireme.abi import check_torch


def find(name: str) -> Path:
    """The file of `trireme`, `trireme_vision`, ..: in an installed package beside this file, else in <build>/lib.

    ImportError says where it was looked for.
    """
    from trireme import _built

    here = Path(__file__).parent
    file = f"lib{name}.so.{_built.LIBRARIES}"
    folders = (here / "lib", here.parents[1] / "lib")
    for folder in folders:
        if (folder / file).exists():
            return folder / file
    raise ImportError(
        f"there is no {file} in {folders[0]} or {folders[1]}; install the wheel again, or in a build: "
        "cmake --build BUILD --target python_packs"
    )


@cache
def load(name: str) -> None:
    """Registers the operators of a library, `torch.ops.trireme.*`, once. Takes some 20 ms after torch is imported."""
    check_torch()
    import torch

    torch.ops.load_library(str(find(name)))
