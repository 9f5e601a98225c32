"""deploy/helm/veneer: rendered by Helm itself, valid for Kubernetes, true to what the code reads, starts and says."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate
import pytest
import yaml
from django.test import Client, override_settings

from controlplane.embedded.blueprint import SECRET_VARIABLES, Blueprint
from controlplane.inference.asgi import application
from tests.controlplane.fake_engine import FakeEngine
from tests.controlplane.inference.conftest import running
from tests.deploy.helm import HelmFault, render
from tests.deploy.test_compose import NOT_OURS, ROOT, blueprint, is_local, names_read

__all__ = ["blueprint"]

CHART = ROOT / "deploy" / "helm" / "veneer"
KUBERNETES = "1.34"
MODEL = {"path": "/models/base", "volume": {"persistentVolumeClaim": {"claimName": "models"}}}
LEAST = {"secretName": "veneer", "model": MODEL}
MOST = LEAST | {
    "migrationSecretName": "veneer-owner",
    "image": {"repository": "registry.internal/veneer", "tag": "0.2.0", "pullSecrets": ["registry"]},
    "allowedHosts": ["console.example.com"],
    "trustedOrigins": ["https://console.example.com"],
    "settings": {"VENEER_DEVICE_COST_PER_HOUR": "2.10", "VENEER_MAX_ADAPTER_BYTES": "1073741824"},
    "engine": {
        "device": "cuda", "maxSavedBytes": 512000000, "drainSeconds": 300, "extraArguments": ["--weights", "fp8"],
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    },
    "door": {"resources": {"requests": {"cpu": "1"}}},
    "runtimeClassName": "nvidia",
    "nodeSelector": {"gpu": "h200"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "podAnnotations": {"owner": "ops"},
    "storage": {"size": "1Ti", "className": "fast"},
    "service": {"type": "LoadBalancer", "annotations": {"x": "y"}},
    "networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]},
    "backup": {"enabled": True, "volume": {"persistentVolumeClaim": {"claimName": "backups"}}},
}  # fmt: skip
KINDS = {"StatefulSet", "Service", "PodDisruptionBudget", "NetworkPolicy"}


def manifests(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(render(CHART, values)) if each]


def of_kind(kind: str, values: dict[str, Any] = MOST) -> dict[str, Any]:
    [found] = [each for each in manifests(values) if each["kind"] == kind]
    return found


def pod(values: dict[str, Any] = MOST) -> dict[str, Any]:
    template: dict[str, Any] = of_kind("StatefulSet", values)["spec"]["template"]
    return template


def containers(values: dict[str, Any] = MOST) -> dict[str, dict[str, Any]]:
    spec = pod(values)["spec"]
    return {each["name"]: each for each in (*spec["initContainers"], *spec["containers"])}


def words(container: dict[str, Any]) -> list[str]:
    return [*container["command"], *container.get("args", [])]


@pytest.mark.parametrize("values", [LEAST, MOST], ids=["least", "most"])
def test_it_is_what_kubernetes_takes(values: dict[str, Any]) -> None:
    found = manifests(values)
    assert {each["kind"] for each in found} == KINDS | ({"CronJob"} if values is MOST else set())
    for each in found:
        kubernetes_validate.validate(each, KUBERNETES, strict=True)


def test_each_process_is_started_as_make_up_starts_it(blueprint: Blueprint) -> None:
    children = [blueprint.engine(), *blueprint.workers(), *blueprint.web()]
    found = containers(LEAST)
    assert {child.name for child in children} | {"migrate"} == found.keys()
    for child in children:
        said = [word for word in child.command[1:] if word.startswith("-") or not is_local(word)]
        assert [word for word in said if word not in words(found[child.name])] == [], child.name


def test_every_variable_that_is_set_is_read() -> None:
    set_here = {variable["name"] for each in containers().values() for variable in each.get("env", [])}
    assert len(set_here) > 10
    assert set_here - NOT_OURS <= names_read()


def test_the_secrets_that_are_asked_for_are_those_that_the_code_reads() -> None:
    """The page that says what to put into them, and what the stack itself has as secrets."""
    page = (ROOT / "docs" / "operations.md").read_text().split("## Kubernetes")[1].split("\n## ")[0]
    named = {word.split("=")[0] for word in page.replace("--from-literal=", "\n=").split("\n=")[1:]}
    assert named == set(SECRET_VARIABLES)


def test_numbers_are_written_out() -> None:
    command, env = words(containers()["engine"]), {v["name"]: v["value"] for v in containers()["door"]["env"]}
    assert command[command.index("--max-saved-bytes") + 1] == env["VENEER_MAX_SAVED_BYTES"] == "512000000"
    assert env["VENEER_MAX_ADAPTER_BYTES"] == "1073741824"
    assert command[-2:] == ["--weights", "fp8"]


def test_the_owners_login_is_known_to_the_migration_and_the_backup_alone() -> None:
    knows = [name for name, each in containers().items() if "veneer-owner" in str(each.get("envFrom"))]
    assert knows == ["migrate"]
    [backup] = of_kind("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert "veneer-owner" in str(backup["envFrom"])
    assert "envFrom" not in containers()["engine"], "the engine needs no secret"


def test_what_must_be_kept_is_on_the_volume() -> None:
    for name, each in containers().items():
        assert {"name": "home", "mountPath": "/data"} in each["volumeMounts"], name
        assert each["securityContext"]["allowPrivilegeEscalation"] is False, name
    [claim] = of_kind("StatefulSet")["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "home"
    volumes = of_kind("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["volumes"]
    assert volumes[0]["persistentVolumeClaim"]["claimName"] == f"home-{of_kind('StatefulSet')['metadata']['name']}-0"
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    assert f"--uid {pod()['spec']['securityContext']['runAsUser']}" in dockerfile


def test_ports_lead_to_who_listens() -> None:
    labels = pod()["metadata"]["labels"]
    services = [each for each in manifests(MOST) if each["kind"] == "Service"]
    assert {each["metadata"]["name"] for each in services} == {"demo-veneer-console", "demo-veneer-door"}
    for service in services:
        [port] = service["spec"]["ports"]
        container = containers()[port["targetPort"]]
        [open_port] = container["ports"]
        assert (open_port["name"], open_port["containerPort"]) == (port["targetPort"], port["port"])
        assert words(container)[words(container).index("--port") + 1] == str(port["port"])
    for selector in (
        *(service["spec"]["selector"] for service in services),
        of_kind("StatefulSet")["spec"]["selector"]["matchLabels"],
        of_kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        of_kind("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    backup = of_kind("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
    assert not services[0]["spec"]["selector"].items() <= backup.items(), "no request goes to a backup"
    [rule] = of_kind("NetworkPolicy")["spec"]["ingress"]
    assert {each["port"] for each in rule["ports"]} == {"console", "door"}


@pytest.mark.django_db
def test_the_console_answers_its_probe() -> None:
    container = containers()["console"]
    asked = container["readinessProbe"]["httpGet"]
    [header] = asked["httpHeaders"]
    allowed = next(each["value"] for each in container["env"] if each["name"] == "VENEER_ALLOWED_HOSTS")
    with override_settings(ALLOWED_HOSTS=allowed.split(",")):
        answer = Client(headers={header["name"]: header["value"]}).get(asked["path"])
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert Client(headers={"Host": "10.0.0.7:8000"}).get(asked["path"]).status_code == 400, "why it names a host"


@pytest.mark.django_db(transaction=True)
def test_the_door_answers_its_probe() -> None:
    asked = containers()["door"]["readinessProbe"]["httpGet"]
    [header] = asked["httpHeaders"]
    with running(application) as url:
        answer = httpx.get(url + asked["path"], headers={header["name"]: header["value"]})
    assert (answer.status_code, answer.json()["engine"]) == (200, "away"), "without an engine it is ready all the same"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[FakeEngine]:
    found = FakeEngine(f"ipc://{tmp_path}/engine.sock").start()
    yield found
    found.kill()


def test_the_engine_answers_its_probe(engine: FakeEngine) -> None:
    python, *arguments = containers()["engine"]["livenessProbe"]["exec"]["command"]
    said = words(containers()["engine"])
    url = said[said.index("--url") + 1]
    assert (python, arguments[1].count(url)) == ("python", 1)
    assert _exit_code(arguments[0], arguments[1].replace(url, engine.url)) == 0
    nobody = arguments[1].replace(url, engine.url + "x").replace("seconds=10", "seconds=0.5")
    assert _exit_code(arguments[0], nobody) == 1


def _exit_code(*arguments: str) -> int:
    env = {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}", "PATH": ""}
    return subprocess.run([sys.executable, *arguments], env=env, timeout=60, check=False).returncode


def test_there_is_time_for_what_has_begun() -> None:
    for values, drain in ((LEAST, 60), (MOST, 300)):
        spec, said = pod(values)["spec"], words(containers(values)["door"])
        graceful = int(said[said.index("--timeout-graceful-shutdown") + 1])
        assert spec["terminationGracePeriodSeconds"] >= 5 + max(drain, graceful) + 10


def test_a_gpu_is_asked_for_where_it_is_wanted() -> None:
    assert containers()["engine"]["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert pod()["spec"]["runtimeClassName"] == "nvidia"
    assert all(
        "nvidia.com/gpu" not in str(each.get("resources")) for name, each in containers().items() if name != "engine"
    )
    assert "runtimeClassName" not in pod(LEAST)["spec"]


def test_there_is_one_of_it_and_nobody_evicts_it() -> None:
    assert of_kind("StatefulSet")["spec"]["replicas"] == 1
    assert of_kind("PodDisruptionBudget")["spec"]["maxUnavailable"] == 0
    off = LEAST | {"podDisruptionBudget": {"enabled": False}, "networkPolicy": {"enabled": False}}
    assert {each["kind"] for each in manifests(off)} == {"StatefulSet", "Service"}


@pytest.mark.parametrize(
    "values, name",
    [
        ({"model": MODEL}, "secretName"),
        ({"secretName": "veneer"}, "volume"),
        (LEAST | {"consoleUrl": "console.example.com"}, "consoleUrl"),
        (LEAST | {"replicas": 2}, "replicas"),
        (LEAST | {"engine": {"device": "tpu"}}, "device"),
        (LEAST | {"settings": {"VENEER_MAX_BODY_BYTES": 4194304}}, "VENEER_MAX_BODY_BYTES"),
        (LEAST | {"settings": {"PATH": "/"}}, "PATH"),
        (LEAST | {"backup": {"enabled": True}}, "/backup/volume"),
    ],
)
def test_what_cannot_be_is_refused_by_name(values: dict[str, Any], name: str) -> None:
    with pytest.raises(HelmFault, match=name):
        render(CHART, values)
