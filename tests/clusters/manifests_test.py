"""The manifests of examples/08_clusters: what they set is what ranks read."""

from __future__ import annotations

import unittest
from collections.abc import Iterator

try:
    from manifests import FOLDER, Pods
except ModuleNotFoundError as error:
    print(f"[  SKIPPED ] clusters/manifests: this Python has no {error.name}")
    raise SystemExit(0) from None

READERS = [FOLDER.parents[1] / "trireme/base" / name for name in ("launchers.cc", "environment.cc")]


class ManifestsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.manifests = {path.name: Pods(path) for path in sorted(FOLDER.glob("*.yaml"))}
        self.assertEqual(
            list(self.manifests), ["indexed_job.yaml", "jobset.yaml", "pytorchjob.yaml"]
        )

    def each(self) -> Iterator[Pods]:
        for name, pods in self.manifests.items():
            with self.subTest(name):
                yield pods

    def test_kinds(self) -> None:
        kinds = [(pods.main["apiVersion"], pods.main["kind"]) for pods in self.manifests.values()]
        self.assertEqual(
            kinds,
            [
                ("batch/v1", "Job"),
                ("jobset.x-k8s.io/v1alpha2", "JobSet"),
                ("kubeflow.org/v1", "PyTorchJob"),
            ],
        )

    def test_variables_are_those_that_ranks_read(self) -> None:
        sources = "".join(path.read_text(encoding="utf-8") for path in READERS)
        for pods in self.each():
            (container,) = pods.pod["containers"]
            for name in [*pods.variables(0), *(item["name"] for item in container["env"])]:
                self.assertIn(f'"{name}"', sources)

    def test_there_is_a_pod_for_each_rank(self) -> None:
        for pods in self.each():
            self.assertEqual(pods.variables(1)["WORLD_SIZE"], str(pods.num_ranks))
            if not pods.is_operators:
                self.assertEqual(pods.job["parallelism"], pods.job["completions"])
                self.assertEqual(pods.job["completionMode"], "Indexed")

    def test_they_meet_at_the_first_pod(self) -> None:
        for pods in self.each():
            variables = pods.variables(1)
            self.assertEqual(variables["MASTER_ADDR"], pods.first_name())
            self.assertTrue(1024 < int(variables["MASTER_PORT"]) < 32768)
        service, job = self.manifests["indexed_job.yaml"].documents
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertEqual(service["spec"]["selector"], {"job-name": job["metadata"]["name"]})
        self.assertEqual(service["metadata"]["name"], job["spec"]["template"]["spec"]["subdomain"])

    def test_all_ranks_have_the_secret_and_the_runs_folder(self) -> None:
        for pods in self.each():
            (container,) = pods.pod["containers"]
            secrets = [item["name"] for item in container["env"] if "valueFrom" in item]
            self.assertEqual(secrets, ["TRIREME_TOKEN"])
            (mount,), (volume,) = container["volumeMounts"], pods.pod["volumes"]
            self.assertEqual(mount["name"], volume["name"])
            words = container["args"]
            self.assertTrue(words[words.index("--run") + 1].startswith(mount["mountPath"] + "/"))
            self.assertIn("--resume", words)
            self.assertTrue(all(isinstance(word, str) for word in words))

    def test_workers_are_as_the_master(self) -> None:
        parts = self.manifests["pytorchjob.yaml"].main["spec"]["pytorchReplicaSpecs"]
        self.assertEqual(parts["Master"]["template"], parts["Worker"]["template"])
        self.assertEqual(parts["Master"]["template"]["spec"]["containers"][0]["name"], "pytorch")


if __name__ == "__main__":
    unittest.main()
