"""Runs other libraries' kernels when `trireme bench kernels` tells it to.

One line of JSON each way. {"do": "load", "peer", "case", "inputs", "outputs"} runs the peer's case
once, writes what it made and answers {"version"}; {"do": "run"} runs it again and answers {"ms"}.
{"missing": why} answers for a peer that is not installed, {"error": what} for one that failed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from registry import PEERS, MissingPeerError, read_inputs, write_outputs

# Each registers its peers.
MODULES = [
    "attention_peers",
    "coco_peers",
    "crop_peers",
    "detection_peers",
    "greedy_peers",
    "nifti_peers",
    "normalization_peers",
    "optimizer_peers",
    "ranking_peers",
    "selection_peers",
    "speech_peers",
    "transducer_peers",
    "volume_peers",
]


class Loaded:
    """The case that `run` runs."""

    run: Callable[[], Any] | None = None


def load(question: dict[str, Any], threads: int, loaded: Loaded) -> dict[str, Any]:
    for module in MODULES:
        importlib.import_module(module)
    kernel = question["case"].split("/")[0]
    make = PEERS.get((kernel, question["peer"]))
    if make is None:
        return {"missing": f"no peer {question['peer']} for {kernel}"}
    try:
        peer = make(read_inputs(Path(question["inputs"])), threads)
    except (ImportError, MissingPeerError) as error:
        return {"missing": f"not installed: {error}"}
    loaded.run = peer.run
    write_outputs(Path(question["outputs"]), (peer.check or peer.run)())
    return {"version": peer.version}


def run(loaded: Loaded) -> dict[str, Any]:
    if loaded.run is None:
        return {"error": "nothing is loaded"}
    begin = time.perf_counter()
    loaded.run()
    return {"ms": (time.perf_counter() - begin) * 1e3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    threads = parser.parse_args().threads
    answers = sys.stdout
    sys.stdout = sys.stderr  # what libraries print is no answer
    loaded = Loaded()
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = load(question, threads, loaded) if question["do"] == "load" else run(loaded)
        except Exception as error:  # it must answer, whatever happened
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
