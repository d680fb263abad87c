"""The packs in Python beside what one would call instead, in one process, in turn.

    ./dev bench python_packs --cases nms,auc --threads 1,2 --rounds 5

A case is a call as users write it, beside a peer, most often one of benchmarks/kernels. Results are
compared before anything is timed. A line has medians in ms, the median over rounds of how many times
ours the peer took (above 1: we are faster), and the largest difference, over the largest value.
"""

import argparse
import importlib
import json
import math
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from case import CASES, Case
from registry import MissingPeerError

# Each registers its cases.
MODULES = ("vision_cases", "operator_cases", "metric_cases", "optimizer_cases")
for _module in MODULES:
    importlib.import_module(_module)

FORM = "{:<28} {:>7} {:>10} {:>10} {:>7} {:>9}  {}"


@dataclass
class Row:
    case: str
    threads: int
    ours_ms: float
    peer_ms: float
    ratio: float
    difference: float
    peer: str


def difference(case: Case) -> float:
    """The largest one of any output, NaN where there is none (draws differ); an error where it is beyond the
    case's tolerance."""
    ours, theirs = case.ours(), case.theirs()
    if not ours:
        return math.nan
    largest = 0.0
    for name, value in ours.items():
        mine, other = (np.asarray(v, dtype=np.float64) for v in (value, theirs[name]))
        if mine.shape != other.shape:
            raise ValueError(f"{name} is of shape {mine.shape}, the peer's of {other.shape}")
        scale = max(float(np.abs(other).max(initial=0)), 1e-30)
        largest = max(largest, float(np.abs(mine - other).max(initial=0)) / scale)
    if largest > case.tolerance:
        raise ValueError(f"results differ by {largest:.1e}, more than {case.tolerance:.1e}")
    return largest


def measured(name: str, threads: int, rounds: int) -> Row:
    torch.set_num_threads(threads)
    case = CASES[name](threads)
    found = difference(case)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for run, ms in zip((case.ours, case.theirs), times, strict=True):
            begin = time.perf_counter()
            run()
            ms.append((time.perf_counter() - begin) * 1e3)
    ours, peer = (statistics.median(ms) for ms in times)
    ratio = statistics.median(theirs / mine for mine, theirs in zip(*times, strict=True))
    return Row(name, threads, ours, peer, ratio, found, case.peer)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=",".join(CASES), help="names, or the beginnings of some")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    chosen = [name for name in CASES if name.startswith(tuple(arguments.cases.split(",")))]
    if not chosen:
        parser.error(f"no case is called {arguments.cases}; there are {', '.join(CASES)}")
    rows, failed = [], False
    print(f"{arguments.rounds} rounds; load before: {os.getloadavg()[0]:.2f}")
    print(FORM.format("case", "threads", "ours ms", "peer ms", "/ours", "differs", "peer"))
    for name in chosen:
        for threads in map(int, arguments.threads.split(",")):
            try:
                row = measured(name, threads, arguments.rounds)
            except (ImportError, MissingPeerError) as error:
                print(f"{name:<28} the peer is missing: {error}")
                continue
            except (ValueError, RuntimeError) as error:
                print(f"{name:<28} {error}")
                failed = True
                continue
            rows.append(asdict(row))
            figures = (f"{row.ours_ms:.2f}", f"{row.peer_ms:.2f}", f"{row.ratio:.2f}")
            print(
                FORM.format(name, threads, *figures, f"{row.difference:.1e}", row.peer), flush=True
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
