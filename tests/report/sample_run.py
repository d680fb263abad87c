"""Makes the folder of a run as the recipes leave it: three segments, the second of them killed.

`python sample_run.py FOLDER` writes one to look at.
"""

from __future__ import annotations

import json
import math
import random
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from trireme.report.documents import document_sha256

MIB = 1 << 20
GRAPH = "22d329d20bbab196ff27ed38f853616f11e08384be7c3336074b2bc0f693e92e"
NUM_MICROBATCHES = 8
STARTED_MS = 1_795_410_000_000  # 2026-11-23T05:00:00Z

Document = dict[str, Any]


def write_document(path: Path, kind: str, body: Document) -> None:
    document = {"format": f"trireme.{kind}", "version": 1, **body}
    document["sha256"] = document_sha256(document)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")


def peaks(stages: int, replicas: int) -> list[dict[str, int]]:
    """By rank: stages in the order of the pipeline, replicas of one beside each other."""
    return [
        {
            "activations": (180 - 40 * stage) * MIB // stages,
            "gradients": 240 * MIB // stages,
            "optimizer": 480 * MIB // stages,
            "parameters": 240 * MIB // stages,
        }
        for stage in range(stages)
        for _ in range(replicas)
    ]


def plan(stages: int, replicas: int, step_ms: float) -> Document:
    edges = [540 * stage // stages for stage in range(stages + 1)]
    return {
        "graph_sha256": GRAPH,
        "objective": "speed",
        "batch": {"global_batch": 64, "microbatch": 8, "lanes": 2},
        "roles": [
            {
                "name": "train",
                "mesh": {"pipeline": stages, "data": replicas, "shard": 1},
                "placement": list(range(stages * replicas)),
            }
        ],
        "stages": [{"begin": begin, "end": end} for begin, end in pairwise(edges)],
        "schedule": {"name": "interleaved", "parameters": {}},
        "prediction": {
            "step_ms": step_ms,
            "lower_bound_ms": 0.91 * step_ms,
            "peak_bytes": peaks(stages, replicas),
            "limits": ["compute: the slowest stage"] + ["waits for stage 0"] * (stages - 1),
        },
    }


def actions(stage: int, stages: int, microbatches: int) -> list[tuple[str, int]]:
    """One forward, one backward: what a stage does, in order."""
    ahead = min(stages - stage, microbatches)
    order = [("F", m) for m in range(ahead)]
    for m in range(microbatches):
        order.append(("B", m))
        if m + ahead < microbatches:
            order.append(("F", m + ahead))
    return order


def pipeline_events(stages: int, microbatches: int, noise: float) -> dict[int, list[Document]]:
    """Events of one replica by stage: actions, waits before them, and the update."""
    rng = random.Random(stages + 100 * noise)
    unit = 400_000.0 / stages / microbatches / 3
    orders = [actions(stage, stages, microbatches) for stage in range(stages)]
    done: dict[tuple[int, str, int], float] = {}
    clock = [0.0] * stages
    events: dict[int, list[Document]] = {stage: [] for stage in range(stages)}
    while any(orders):
        for stage, order in enumerate(orders):
            while order:
                kind, m = order[0]
                before = stage - 1 if kind == "F" else stage + 1
                needed = (before, kind, m)
                if 0 <= before < stages and needed not in done:
                    break
                ready = done.get(needed, 0.0) + 500
                order.pop(0)
                if ready > clock[stage] and needed in done:
                    value = "v120" if kind == "F" else "g120"
                    name = f"recv {value} m{m} {before}>{stage}"
                    wait: Document = {"track": "wait", "cat": "recv", "name": name}
                    wait |= {"ts": clock[stage], "dur": ready - clock[stage]}
                    wait["args"] = {"microbatch": m}
                    events[stage].append(wait)
                    clock[stage] = ready
                length = unit * (1 if kind == "F" else 2) * (1 + noise * rng.random())
                event: Document = {"track": "compute", "cat": kind, "name": f"{stage}{kind}{m}"}
                event |= {"ts": clock[stage], "dur": length}
                event["args"] = {"stage": stage, "microbatch": m}
                events[stage].append(event)
                clock[stage] += length
                done[stage, kind, m] = clock[stage]
    end = max(clock)
    for stage in range(stages):
        for cat, start, length, track in (
            ("exchange", clock[stage], end - clock[stage] + 300, "wait"),
            ("reduce", end + 300, 4000, "compute"),
            ("update", end + 4300, 15000, "compute"),
        ):
            name = "reduce bucket 0" if cat == "reduce" else cat
            tail: Document = {"track": track, "cat": cat, "name": name, "args": {}}
            events[stage].append({**tail, "ts": start, "dur": length})
    return events


def timeline(stages: int, replicas: int, step: int) -> Document:
    """Predicted and measured timeline as the program writes them (docs/formats.md)."""
    rows = [{"timeline": t, "track": track} for t in range(2) for track in ("compute", "wait")]
    names: list[Document] = []
    traced: list[Document] = []
    for number, name in enumerate(("predicted", "measured")):
        for rank in range(stages * replicas):
            stage, replica = divmod(rank, replicas)
            noise = 0.0 if name == "predicted" else 0.1 + 0.02 * replica
            for event in pipeline_events(stages, NUM_MICROBATCHES // replicas, noise)[stage]:
                tid = 2 * number + (1 if event["track"] == "compute" else 2)
                rest = {key: value for key, value in event.items() if key != "track"}
                traced.append({"ph": "X", "pid": rank, "tid": tid, **rest})
    for rank in range(stages * replicas):
        process = {"ph": "M", "pid": rank, "name": "process_name"}
        names.append({**process, "args": {"name": f"rank {rank}"}})
        for tid, row in enumerate(rows, start=1):
            name = f"{'predicted' if row['timeline'] == 0 else 'measured'} {row['track']}"
            thread = {"ph": "M", "pid": rank, "tid": tid, "name": "thread_name"}
            names.append({**thread, "args": {"name": name}})
    return {
        "displayTimeUnit": "ms",
        "timelines": [{"name": "predicted", "step": step}, {"name": "measured", "step": step}],
        "rows": rows,
        "traceEvents": names + traced,
    }


def step_line(step: int, step_ms: float) -> Document:
    """The same numbers whenever a step is trained again, but for its times."""
    rng = random.Random(step)
    return {
        "step": step,
        "loss": 2.1 + 7 * math.exp(-step / 40) + 0.12 * rng.random(),
        "learning_rate": 1e-3 * min(1, (step + 1) / 30),
        "step_ms": step_ms * (3 if step == 0 else 1 + 0.06 * rng.random()),
        "samples_per_s": 64e3 / step_ms,
        "data_wait_ms": 0.2 * rng.random(),
        "read_ms": 0.5 * step_ms,
        "decode_ms": 0.8 * step_ms,
        "read_mb_per_s": 12.5,
        "batches_ready": 1.75,
        "gradient_norm": 1.2 + rng.random(),
    }


def segment(index: int, steps: tuple[int, int], mesh: tuple[int, int], is_done: bool) -> Document:
    stages, replicas = mesh
    predicted = 436.0 if index == 0 else 471.0 + 20 * index
    result: Document = {
        "first_step": steps[0],
        "end_step": steps[1],
        "ranks": stages * replicas,
        "stages": stages,
        "replicas": replicas,
        "schedule": "interleaved",
        "started": f"2026-11-23T05:0{2 * index}:00Z",
        "plan": f"plan-{index + 1}.json",
        "predicted_step_ms": predicted,
        "predicted_peak_bytes": peaks(stages, replicas),
        "ended": "done" if is_done else "unknown",
    }
    if is_done:
        totals = [sum(kinds.values()) for kinds in result["predicted_peak_bytes"]]
        result["median_step_ms"] = 1.04 * predicted
        result["peak_bytes"] = [int(1.06 * total) for total in totals]
        result["resident_peak_bytes"] = [total + 420 * MIB for total in totals]
        result["data_wait_fraction"] = 0.001
        result["timeline"] = f"timeline-{index + 1}.json"
    return result


def run_document() -> Document:
    return {
        "model": "t5",
        "options": {"layers": "4", "width": "256", "corpus": "<text & more>"},
        "seed": 0,
        "batch": {"global_batch": 64, "microbatch": 8, "lanes": 2},
        "segments": [
            segment(0, (0, 50), (2, 2), True),
            segment(1, (50, 150), (2, 1), False),
            segment(2, (75, 150), (3, 1), True),
        ],
    }


def metrics_lines() -> list[Document]:
    lines: list[Document] = []
    time_ms = float(STARTED_MS + 2500)
    for begin, end, step_ms in ((0, 50, 450.0), (50, 88, 505.0), (75, 150, 530.0)):
        for step in range(begin, end):
            line = step_line(step, step_ms)
            time_ms += line["step_ms"]
            lines.append({**line, "time_ms": int(time_ms)})
            if (step + 1) % 25 == 0:
                loss = 2.3 + 7 * math.exp(-step / 40)
                time_ms += 120
                evaluation = {"evaluation": {"loss": loss}, "evaluation_ms": 118.5}
                lines.append({"step": step + 1, **evaluation, "time_ms": int(time_ms)})
        time_ms += 60_000  # until it was started again
    return lines


def write_run(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    run = run_document()
    write_document(folder / "run.json", "run", run)
    for one in run["segments"]:
        mesh = one["stages"], one["replicas"]
        write_document(folder / one["plan"], "plan", plan(*mesh, one["predicted_step_ms"]))
        if "timeline" in one:
            body = timeline(*mesh, one["end_step"] - 1)
            write_document(folder / one["timeline"], "timeline", body)
    lines = [json.dumps(line) + "\n" for line in metrics_lines()]
    (folder / "metrics.jsonl").write_text("".join(lines), encoding="utf-8")
    for step in (25, 50, 75, 100, 150):
        checkpoint = folder / "checkpoints" / f"step-{step}"
        checkpoint.mkdir(parents=True, exist_ok=True)
        (checkpoint / "index.json").write_text("{}", encoding="utf-8")
    examples = "input   The <extra_id_0> walks in a park\noutput  <script>alert(1)</script>\n"
    (folder / "examples.txt").write_text(examples, encoding="utf-8")


if __name__ == "__main__":
    write_run(Path(sys.argv[1]))
