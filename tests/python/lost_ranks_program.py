"""Rank 1 ends in the middle of a training; rank 0 says what it has learnt, and when, as JSON.

lost_ranks_program.py killed | raises
"""

import json
import os
import signal
import sys
import time

import trireme

trireme.init(ranks=2)
import models  # noqa: E402

case = models.case("mlp")
session = trireme.Session(
    case.make(),
    case.loss,
    case.data,
    plan="even",
    stages=2,
    replicas=1,
    batch_size=16,
    microbatch_size=4,
)
try:
    for report in session:
        if report.step == 3 and session.rank == 1:
            print(time.time(), flush=True)
            if sys.argv[1] == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("the disk is full")
except trireme.Error as error:
    told = {"rank": error.rank, "peer": error.peer, "kind": error.kind, "text": str(error)}
    print(json.dumps({**told, "at": time.time()}), flush=True)
    raise
