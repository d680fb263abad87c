"""Variables that Kubernetes sets in a pod of a manifest of examples/08_clusters, a line NAME=VALUE each.

manifests.py FILE INDEX
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "examples/08_clusters"
PORT = 23456  # the training operator's own, where a container names none


class Pods:
    """The ranks of a manifest: how many there are, and the form of a pod."""

    def __init__(self, path: Path) -> None:
        self.documents: list[Any] = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        self.main = self.documents[-1]
        self.name: str = self.main["metadata"]["name"]
        self.is_operators = self.main["kind"] == "PyTorchJob"
        if self.is_operators:
            replicas = self.main["spec"]["pytorchReplicaSpecs"]
            self.num_ranks = sum(int(part["replicas"]) for part in replicas.values())
            self.pod = replicas["Master"]["template"]["spec"]
            return
        self.job = self.main["spec"]
        if self.main["kind"] == "JobSet":
            self.job = self.job["replicatedJobs"][0]["template"]["spec"]
        self.num_ranks = int(self.job["completions"])
        self.pod = self.job["template"]["spec"]

    def variables(self, index: int) -> dict[str, str]:
        """Of pod `index`, but for those that hold a secret."""
        container = self.pod["containers"][0]
        own = {item["name"]: item["value"] for item in container["env"] if "value" in item}
        if not self.is_operators:
            return own | {"JOB_COMPLETION_INDEX": str(index)}
        return own | {
            "RANK": str(index),
            "WORLD_SIZE": str(self.num_ranks),
            "MASTER_ADDR": f"{self.name}-master-0",
            "MASTER_PORT": str(PORT),
        }

    def first_name(self) -> str:
        """What other pods call the first one."""
        if self.is_operators:
            return f"{self.name}-master-0"
        if self.main["kind"] == "JobSet":
            part = self.main["spec"]["replicatedJobs"][0]["name"]
            return f"{self.name}-{part}-0-0.{self.name}"
        return f"{self.name}-0.{self.pod['subdomain']}"


if __name__ == "__main__":
    for variable in Pods(FOLDER / sys.argv[1]).variables(int(sys.argv[2])).items():
        print("=".join(variable))
