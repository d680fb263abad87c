"""Peers of reading NIfTI files."""

from __future__ import annotations

import numpy as np

from registry import Inputs, Outputs, Peer, peer


@peer("nifti", "nibabel")
def nifti_nibabel(inputs: Inputs, threads: int) -> Peer:
    import nibabel

    file = inputs.folder / inputs.options["file"]

    def run() -> Outputs:
        return {"values": nibabel.load(file).get_fdata(dtype=np.float32).T}

    return Peer(f"nibabel {nibabel.__version__}", run)
