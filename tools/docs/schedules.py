"""The picture and the table of docs/concepts/schedules.md, from the program's own forecasts:
python tools/docs/schedules.py build/dev/cli/trireme docs/concepts/schedules.svg

Stages are equal; F, I and W of all stages of a rank take 1 ms each, updates nothing. A microbatch
leaves 6 MiB on each rank, so that what a rank holds can be read off its activations.
"""

import argparse
import hashlib
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

RANKS, MICROBATCHES = 4, 8
KEPT_BYTES = 6 << 20  # Of a microbatch, by all stages of a rank together.
CASES = [  # Title, schedule, stages on a rank, milliseconds of a message. Those of none are drawn.
    ("simple", "simple", 1, 0.0),
    ("interleaved", "interleaved", 1, 0.0),
    ("interleaved, 2 stages a rank", "interleaved", 2, 0.0),
    ("zero_bubble", "zero_bubble", 1, 0.0),
    ("zero_bubble_h2", "zero_bubble_h2", 1, 0.0),
    ("v_half, 2 stages a rank", "v_half", 2, 0.0),
    ("v_min, 2 stages a rank", "v_min", 2, 0.0),
    ("simple, messages of 0.5 ms", "simple", 1, 0.5),
    ("interleaved, messages of 0.5 ms", "interleaved", 1, 0.5),
    ("your own, messages of 0.5 ms", "own", 1, 0.5),
]
COLORS = {"F": "#3f7fbf", "B": "#c8813a", "I": "#c8813a", "W": "#5a9a5a"}
UNIT, ROW, LEFT = 24, 18, 58  # Pixels: of a millisecond, a rank, and what stands before it.


def write(path: Path, form: str, body: dict[str, Any]) -> None:
    path.write_text(json.dumps({"format": f"trireme.{form}", "version": 1, **body}))


def chain(num_stages: int) -> dict[str, Any]:
    """A graph of as many nodes, each with a parameter, and a loss."""

    def tensor(shape: list[Any], source: str, **more: object) -> dict[str, Any]:
        strides = [4, 1] if shape else []
        values.append({"dtype": "f32", "shape": shape, "strides": strides, "source": source})
        values[-1] |= {"storage": len(values) - 1, **more}
        return {"value": len(values) - 1}

    values: list[dict[str, Any]] = []
    rows = [{"per_sample": 1, "fixed": 0}, 4]
    last = tensor(rows, "input")
    nodes, parameters = [], []
    for index in range(num_stages + 1):
        node: dict[str, Any] = {"id": index, "name": f"n{index}", "overload": "", "inputs": [last]}
        node["op"] = "aten::mean"
        if index < num_stages:
            node["op"] = "aten::linear"
            weight = tensor([4, 4], "parameter", requires_grad=True)
            parameters.append({"name": f"{index}.weight", **weight})
            node["inputs"] = [last, weight]
        node["inputs"] = [*node["inputs"], None]
        shape = rows if index < num_stages else []
        last = tensor(shape, "node", producer=index, requires_grad=True)
        node["outputs"] = [last["value"]]
        nodes.append(node)
    graph = {"mode": "train", "inputs": [{"name": "x", "value": 0, "batch_dim": 0}], "buffers": []}
    graph |= {"parameters": parameters, "values": values, "nodes": nodes}
    return graph | {"losses": [{"name": "loss", "coefficient": 1.0, **last}]}


def identity(graph: dict[str, Any]) -> str:
    """graph_sha256 of docs/formats.md."""
    nodes = [{k: v for k, v in node.items() if k != "name"} for node in graph["nodes"]]
    computed = graph | {"nodes": nodes, "constants": {}}
    text = json.dumps(computed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def describe(folder: Path, each: int, message_ms: float) -> None:
    """Graph, profile and topology of ranks with `each` equal stages."""
    num_stages = each * RANKS
    graph = chain(num_stages)
    write(folder / "graph.json", "graph", graph | {"torch_version": "2.15.0"})
    nothing = {"spread": 0.0, "forward_workspace_bytes": 0, "backward_workspace_bytes": 0}
    costs = [
        {"key": key, "kept_bytes": kept, **nothing, **dict.fromkeys(times, us)}
        for times in [("forward_us", "input_us", "weight_us")]
        for key, us, kept in (("linear", 1000.0 / each, KEPT_BYTES // each), ("mean", 0.0, 0))
    ]
    us = message_ms * 1000
    links = [{"bytes": size, "alone_us": us, "beside_compute_us": us} for size in (0, 1 << 20)]
    machine = {"processor": "", "num_cores": RANKS, "instruction_set": "", "torch_version": ""}
    profile = {"graph_sha256": identity(graph), "microbatch": 1, "num_busy_ranks": RANKS}
    profile |= {"hardware": machine, "costs": costs, "cost_of": [0] * num_stages + [1]}
    profile |= {"ranges": [], "links": [{"kind": "host", "times": links}]}
    profile |= {"step": {"optimizer_ns": 0.0, "fold_ns": 0.0, "copy_ns_per_byte": 0.0}}
    write(folder / "profile.json", "profile", profile)
    ranks = [{"host": 0, "cores": [rank], "memory_bytes": 1 << 30} for rank in range(RANKS)]
    hosts = [{"name": "a", "num_cores": RANKS, "memory_bytes": 1 << 34}]
    write(folder / "topology.json", "topology", {"hosts": hosts, "ranks": ranks})


def own() -> dict[str, Any]:
    """One of one's own: as interleaved, but about twice as many forwards ahead, for slow links."""
    ranks = []
    for stage in range(RANKS):
        ahead = min(2 * (RANKS - stage) - 1, MICROBATCHES)
        actions = [f"{stage}F{microbatch}" for microbatch in range(ahead)]
        for microbatch in range(MICROBATCHES):
            actions.append(f"{stage}B{microbatch}")
            if microbatch + ahead < MICROBATCHES:
                actions.append(f"{stage}F{microbatch + ahead}")
        ranks.append(actions)
    return {"num_stages": RANKS, "num_microbatches": MICROBATCHES, "ranks": ranks}


def plan(program: str, folder: Path, schedule: str, each: int) -> dict[str, Any]:
    """What the program forecasts of a step: its text and its timeline."""
    files = [f"--{name}={folder / name}.json" for name in ("graph", "profile", "topology")]
    out = f"--out={folder / 'plan.json'}"
    layout = [f"--batch={MICROBATCHES}", f"--stages={each * RANKS}", "--replicas=1", out]
    if schedule == "own":
        write(folder / "own.json", "schedule", own())
        layout += ["--microbatch=1", f"--schedule-file={folder / 'own.json'}"]
        run(program, "partition", files[0], *layout)
    else:
        layout += [f"--schedule={schedule}", f"--stages-per-rank={each}", "--recompute=none"]
        run(program, "partition", *files, *layout)
    timeline = folder / "timeline.json"
    text = run(
        program, "simulate", f"--plan={folder / 'plan.json'}", *files, f"--timeline={timeline}"
    )
    return {"text": text, "timeline": json.loads(timeline.read_text())}


def run(program: str, *arguments: str) -> str:
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def held(text: str, each: int) -> float:
    """Most microbatches, all stages of a rank together, whose activations a rank holds."""
    table = text.split("peak memory of a rank of the stage")[1].split("\n\n")[0]
    rows = re.findall(r"^ +\d+ +(?:[\d.]+ \w+ +){3}([\d.]+) MiB", table, re.M)
    assert len(rows) == each * RANKS, table
    return max(map(float, rows)) / (KEPT_BYTES >> 20)


def panel(title: str, timeline: dict[str, Any], top: int) -> list[str]:
    """A schedule's rows. Boxes of the second half of the stages are lighter."""
    lines = [f'<text y="{top + 12}">{title}</text>']
    lines += [
        f'<text y="{top + ROW * (rank + 1) + 12}">rank {rank}</text>' for rank in range(RANKS)
    ]
    compute = [row + 1 for row, one in enumerate(timeline["rows"]) if one["track"] == "compute"]
    for event in timeline["traceEvents"]:
        if event["ph"] != "X" or event["tid"] not in compute or event["cat"] not in COLORS:
            continue
        x, width = LEFT + event["ts"] / 1000 * UNIT, event["dur"] / 1000 * UNIT - 1
        y = top + ROW * (event["pid"] + 1)
        kind = event["cat"] + ("2" if event["args"]["stage"] >= RANKS else "")
        lines.append(
            f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{ROW - 2}" class="{kind}"/>'
            f'<text x="{x + width / 2:g}" y="{y + 12}" class="n">{event["args"]["microbatch"]}</text>'
        )
    return lines


def picture(panels: list[str], width: float, height: int) -> str:
    """Grey letters and full boxes can be read on white and on black."""
    style = "text{font:12px sans-serif;fill:#808080}.n{font-size:10px;fill:#fff;text-anchor:middle}"
    for kind, color in COLORS.items():
        style += f".{kind}{{fill:{color}}}.{kind}2{{fill:{color};fill-opacity:.65}}"
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}">']
    return "\n".join([*lines, f"<style>{style}</style>", *panels, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("out", type=Path, help="the picture")
    arguments = parser.parse_args()
    panels: list[str] = []
    top, longest = 0, 0.0
    print("| schedule | step ms | waits | held |\n|---|---|---|---|")
    for title, schedule, each, message_ms in CASES:
        with tempfile.TemporaryDirectory() as folder:
            describe(Path(folder), each, message_ms)
            found = plan(arguments.program, Path(folder), schedule, each)
        step, most = float(found["text"].split()[1]), held(found["text"], each)
        print(f"| {title} | {step:g} | {1 - 3 * MICROBATCHES / step:.0%} | {most:g} |")
        if message_ms == 0:
            said = f"{title}: {step:g} ms, a rank holds at most {most:g} microbatches"
            panels += panel(said, found["timeline"], top)
            top += ROW * (RANKS + 1) + 14
            longest = max(longest, step)
    arguments.out.write_text(picture(panels, LEFT + longest * UNIT, top))


if __name__ == "__main__":
    main()
