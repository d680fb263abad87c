"""The manifests of examples/08_clusters, judged by the typed models that Kubernetes' and Kubeflow's clients have.

They are generated from the servers' schemas: a value of another type or a field that is missing is an error, and what
they do not know they drop. So a manifest is right where a model gives it back unchanged. Exit code 77: a package is
not installed.
"""

from __future__ import annotations

import copy
import json
import sys
import unittest
from types import SimpleNamespace
from typing import Any

try:
    import kubeflow.training
    import kubernetes.client
    from kubeflow_trainer_api import models

    from manifests import FOLDER, Pods
except ModuleNotFoundError as error:
    print(f"skipped: {error.name} is not installed; ./dev test --judges installs it")
    sys.exit(77)

Manifest = dict[str, Any]


def differences(given: Any, back: Any, place: str = "") -> set[str]:  # noqa: ANN401
    """Places in which a manifest differs from what a model made of it."""
    if isinstance(given, dict) and isinstance(back, dict):
        missing = {f"{place}/{key}" for key in given.keys() - back.keys()}
        common = given.keys() & back.keys()
        return missing.union(*(differences(given[k], back[k], f"{place}/{k}") for k in common))
    if isinstance(given, list) and isinstance(back, list) and len(given) == len(back):
        pairs = enumerate(zip(given, back, strict=True))
        return set().union(*(differences(a, b, f"{place}/{i}") for i, (a, b) in pairs))
    return set() if given == back and type(given) is type(back) else {place}


def judged(manifest: Manifest) -> set[str]:
    """Places that are wrong. ValueError where a field is missing or of another type."""
    kind, spec = manifest["kind"], manifest["spec"]
    if kind == "JobSet":
        jobs = [part["template"] for part in spec["replicatedJobs"]]
        wrong = [by_client(kubernetes.client, job, "V1JobTemplateSpec") for job in jobs]
        return by_model(models.JobsetV1alpha2JobSet, manifest).union(*wrong)
    if kind == "PyTorchJob":
        # This client wants spec.runPolicy, which the operator's own schema does not.
        whole = manifest | {"spec": {"runPolicy": {}} | spec}
        pods = [replicas["template"] for replicas in spec["pytorchReplicaSpecs"].values()]
        wrong = [by_model(models.IoK8sApiCoreV1PodTemplateSpec, pod) for pod in pods]
        return by_client(kubeflow.training, whole, "KubeflowOrgV1PyTorchJob").union(*wrong)
    of_core = {"Service": models.IoK8sApiCoreV1Service, "Job": models.IoK8sApiBatchV1Job}
    return by_model(of_core[kind], manifest) | by_client(kubernetes.client, manifest, f"V1{kind}")


def by_model(model: Any, part: Manifest) -> set[str]:  # noqa: ANN401
    """By a class of kubeflow_trainer_api, which is strict about types."""
    return differences(part, model.from_dict(part).to_dict())


def by_client(module: Any, part: Manifest, kind: str) -> set[str]:  # noqa: ANN401
    """By a client's class, which is strict about fields that have to be there."""
    client = module.ApiClient()
    made = client.deserialize(SimpleNamespace(data=json.dumps(part)), kind)
    return differences(part, client.sanitize_for_serialization(made))


class ManifestModelsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.manifests = [d for path in FOLDER.glob("*.yaml") for d in Pods(path).documents]

    def test_manifests_are_what_servers_take(self) -> None:
        kinds = sorted(manifest["kind"] for manifest in self.manifests)
        self.assertEqual(kinds, ["Job", "JobSet", "PyTorchJob", "Service"])
        for manifest in self.manifests:
            with self.subTest(manifest["kind"]):
                self.assertEqual(judged(manifest), set())

    def test_mistakes_are_found(self) -> None:
        for manifest in self.manifests:
            if manifest["kind"] == "Service":
                continue
            with self.subTest(manifest["kind"]):
                for change in (misspell, as_number, leave_out_name):
                    self.assertTrue(self.is_refused(manifest, change), change.__name__)
            unknown = copy.deepcopy(manifest)
            unknown["spec"]["replicaz"] = 2
            self.assertEqual(judged(unknown), {"/spec/replicaz"})

    def is_refused(self, manifest: Manifest, change: Any) -> bool:  # noqa: ANN401
        wrong = copy.deepcopy(manifest)
        change(container_of(wrong))
        try:
            return judged(wrong) != set()
        except ValueError:
            return True


def container_of(manifest: Manifest) -> Manifest:
    """The container of its first pod."""
    spec = manifest["spec"]
    if manifest["kind"] == "JobSet":
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    elif manifest["kind"] == "PyTorchJob":
        spec = spec["pytorchReplicaSpecs"]["Master"]
    container: Manifest = spec["template"]["spec"]["containers"][0]
    return container


def misspell(container: Manifest) -> None:
    container["volumeMount"] = container.pop("volumeMounts")


def as_number(container: Manifest) -> None:
    container["args"].append(64)


def leave_out_name(container: Manifest) -> None:
    del container["name"]


if __name__ == "__main__":
    unittest.main()
