"""Describes a model of another program to Trireme and plans it: python plan.py PROGRAM FOLDER.

Four linear layers of 256 on two hosts of two ranks. docs/formats.md has the meaning of each field.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LAYERS, WIDTH, MICROBATCH = 4, 256, 8
COMPUTED = ("mode", "inputs", "parameters", "buffers", "losses", "values", "nodes")


def write(path: Path, form: str, body: dict[str, Any]) -> None:
    path.write_text(json.dumps({"format": f"trireme.{form}", "version": 1, **body}))


def tensor(storage: int, source: str, shape: list[Any], **more: object) -> dict[str, Any]:
    strides = [WIDTH, 1] if shape else []
    return {
        "dtype": "f32",
        "source": source,
        "shape": shape,
        "strides": strides,
        "storage": storage,
        **more,
    }


rows = [{"per_sample": 1, "fixed": 0}, WIDTH]
values, nodes, parameters = [tensor(0, "input", rows)], [], []
for layer in range(LAYERS + 1):  # The last one is the loss, a mean.
    inputs: list[Any] = [{"value": len(values) - 1}, None]
    if layer < LAYERS:
        parameters.append({"name": f"{layer}.weight", "value": len(values)})
        inputs.insert(1, {"value": len(values)})
        values.append(tensor(len(values), "parameter", [WIDTH, WIDTH], requires_grad=True))
    op, shape = ("linear", rows) if layer < LAYERS else ("mean", [])
    nodes.append(
        {
            "id": layer,
            "op": f"aten::{op}",
            "overload": "",
            "inputs": inputs,
            "outputs": [len(values)],
        }
    )
    values.append(tensor(len(values), "node", shape, producer=layer, requires_grad=True))
loss = {"name": "loss", "value": len(values) - 1, "coefficient": 1.0}
graph = {
    "mode": "train",
    "inputs": [{"name": "x", "value": 0, "batch_dim": 0}],
    "parameters": parameters,
}
graph |= {"buffers": [], "losses": [loss], "values": values, "nodes": nodes}
computed: dict[str, Any] = {name: graph[name] for name in COMPUTED} | {"constants": {}}
canonical = json.dumps(computed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
graph_sha256 = hashlib.sha256(canonical.encode()).hexdigest()

workspace = {
    "spread": 0.0,
    "kept_bytes": 0,
    "forward_workspace_bytes": 0,
    "backward_workspace_bytes": 0,
}
linear = {
    "key": "linear",
    "forward_us": 90.0,
    "input_us": 90.0,
    "weight_us": 90.0,
    "saved_inputs": [0, 1],
}
mean = {"key": "mean", "forward_us": 3.0, "input_us": 3.0, "weight_us": 0.0}
links = []
for kind, us in (("host", 4.0), ("network", 200.0)):
    times = [
        {"bytes": size, "alone_us": us * k, "beside_compute_us": us * k}
        for k, size in ((1, 0), (9, 1 << 20))
    ]
    links.append({"kind": kind, "times": times})
machine = {"processor": "", "num_cores": 2, "instruction_set": "", "torch_version": ""}
profile = {
    "graph_sha256": graph_sha256,
    "microbatch": MICROBATCH,
    "num_busy_ranks": 1,
    "hardware": machine,
}
profile |= {
    "costs": [linear | workspace, mean | workspace],
    "cost_of": [0] * LAYERS + [1],
    "ranges": [],
}
profile |= {"links": links, "step": {"optimizer_ns": 1.0, "fold_ns": 0.3, "copy_ns_per_byte": 0.1}}

hosts = [{"name": name, "num_cores": 2, "memory_bytes": 1 << 32} for name in "ab"]
ranks = [{"host": rank // 2, "cores": [rank % 2], "memory_bytes": 1 << 31} for rank in range(4)]

program, folder = sys.argv[1], Path(sys.argv[2])
named = [node | {"name": f"layer {node['id']}"} for node in nodes]
write(folder / "graph.json", "graph", graph | {"nodes": named, "torch_version": "2.15.0"})
write(folder / "profile.json", "profile", profile)
write(folder / "topology.json", "topology", {"hosts": hosts, "ranks": ranks})
files = [f"--{name}={folder / name}.json" for name in ("graph", "profile", "topology")]
subprocess.run(
    [program, "partition", *files, "--batch=128", f"--out={folder / 'plan.json'}"], check=True
)
