"""Layouts that are found beside published ones, on the same devices with the same batch: layouts.py PROGRAM.

A step of each is predicted; `faster` is the published layout's predicted step over that of the best one found, and
`most of it` the part of the step that shrinks most. Without a published split the row has the best with its replicas.
"""

import json
import subprocess
import sys
from typing import Any

# Model, hosts, batch, options of the publication.
PUBLISHED: list[tuple[str, str, int, int, list[str]]] = [
    ("t5-3b", "p4d", 256, 2048, []),
    *(
        (model, "dgx_a100", hosts, batch, ["--seq-len", "2048", "--type", "f16"])
        for model, hosts, batch in [
            ("gpt-1.7b", 4, 512),
            ("gpt-3.6b", 8, 512),
            ("gpt-7.5b", 16, 512),
            ("gpt-18b", 32, 1024),
            ("gpt-39b", 64, 1536),
            ("gpt-76b", 128, 1792),
            ("gpt-145b", 192, 2304),
            ("gpt-310b", 240, 2160),
            ("gpt-530b", 315, 2520),
            ("gpt-1t", 384, 3072),
        ]
    ),
    *(
        ("llama3-405b", "dgx_h100", hosts, batch, ["--seq-len", "8192", "--type", "f8"])
        for hosts, batch in [(64, 1152), (1024, 1536)]
    ),
    ("bloom-176b", "jean_zay_a100", 48, 2048, ["--seq-len", "2048"]),
]
PARTS = {
    "compute_s": "compute",
    "tensor_s": "collectives in layers",
    "transfer_s": "messages",
    "bubble_s": "bubble",
    "reduction_s": "sum of gradients",
    "update_s": "optimizer",
}


def text_of(layout: dict[str, Any]) -> str:
    parts = f" x {layout['stages_per_rank']} parts" if layout["stages_per_rank"] > 1 else ""
    context = f" x context {layout['context']}" if layout["context"] > 1 else ""
    return (
        f"{layout['tensor']} x {layout['pipeline']}{parts} x {layout['data']}{context}, "
        f"microbatch {layout['microbatch']}, {layout['recompute']}, {layout['sharded']}"
    )


def row_of(program: str, published: tuple[str, str, int, int, list[str]]) -> str:
    model, machine, hosts, batch, options = published
    command = [program, "plan", model, "--topology", machine, "--hosts", str(hosts), "--json"]
    command += ["--batch", str(batch), "--most", "1", *options]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    best, theirs = found["best"][0], found["published"][0]
    known = theirs.get("predicted")
    measured = f"{theirs['step_s']:.2f}" if theirs["step_s"] else "-"
    if known is None:
        return f"| {model} | {measured} | - | {best['step_s']:.2f} | - | - | {text_of(best['layout'])} |"
    gains = {name: known[part] - best[part] for part, name in PARTS.items()}
    most = max(gains, key=lambda name: gains[name])
    share = gains[most] / known["step_s"]
    return (
        f"| {model} | {text_of(known['layout'])} | {measured} | {known['step_s']:.2f} | {best['step_s']:.2f} "
        f"| {known['step_s'] / best['step_s']:.2f} | {text_of(best['layout'])} | {most} -{share:.0%} |"
    )


def main(program: str) -> None:
    print("tensor x pipeline x data, recomputed, sharded; seconds a step")
    print(
        "| model | published | measured | predicted | found | faster | layout found | most of it |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for published in PUBLISHED:
        print(row_of(program, published), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
