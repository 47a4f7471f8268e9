"""The container files say what a team may rely on: order, health, grace, and nothing open to the network.

No container engine is needed: the files are checked against the Compose schema and read as data; what they run
against Temporal is run here against a real one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client

from embedded.ports import free_port
from embedded.program import READY_PATH
from embedded.stack import WORKER_GRACE_SECONDS
from embedded.temporal_server import SEARCH_ATTRIBUTES, TemporalServer, temporal_binary
from worker.settings import WorkerSettings

ROOT = Path(__file__).parent.parent
COMPOSE = ROOT / "docker-compose.yml"

LAUNCH_SECONDS = 5
"""How long a worker that shuts down lets launches in progress reach running."""

DRAIN_SECONDS = WorkerSettings.model_fields["drain_seconds"].default
"""How long it then lets its executions finish."""

FAREWELL_SECONDS = 10
"""What it may take to end the rest and to say that they were aborted."""

ALMANAC = {"migrate", "worker", "api"}
ONE_SHOT = {"temporal-schema", "temporal-namespace", "migrate"}
SECRETS = {"POSTGRES_PASSWORD", "ALMANAC_API_TOKEN", "ALMANAC_SECRET_KEY"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return loaded


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = compose["services"]
    return loaded


def valid_compose(file: Path) -> bool:
    argv = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def test_the_file_is_valid_and_the_check_would_see_if_it_were_not(tmp_path: Path) -> None:
    assert valid_compose(COMPOSE)
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(COMPOSE.read_text().replace("stop_grace_period", "stop_grace"))
    assert not valid_compose(broken)


def test_the_parts(services: dict[str, dict[str, Any]]) -> None:
    servers = {"postgres", "temporal", "temporal-ui", "worker", "api"}
    assert set(services) == servers | ONE_SHOT
    for name, service in services.items():
        assert service["restart"] == ("no" if name in ONE_SHOT else "unless-stopped"), name


def test_each_part_waits_for_what_it_needs(services: dict[str, dict[str, Any]]) -> None:
    def needs(name: str) -> dict[str, str]:
        return {other: how["condition"] for other, how in services[name]["depends_on"].items()}

    healthy, done = "service_healthy", "service_completed_successfully"
    assert needs("temporal-schema") == {"postgres": healthy}
    assert needs("temporal") == {"temporal-schema": done}
    assert needs("temporal-namespace") == {"temporal": healthy}
    assert needs("temporal-ui") == {"temporal": healthy}
    assert needs("migrate") == {"postgres": healthy}
    assert needs("worker") == needs("api") == {"migrate": done, "temporal-namespace": done}
    waited_for = {other for name in services for other, how in services[name].get("depends_on", {}).items()}
    assert all("healthcheck" in services[name] for name in waited_for - ONE_SHOT)


def seconds(duration: str) -> int:
    match = re.fullmatch(r"(\d+)s", duration)
    assert match, duration
    return int(match[1])


def test_the_stop_grace_covers_a_workers_whole_shutdown(services: dict[str, dict[str, Any]]) -> None:
    grace = seconds(services["worker"]["stop_grace_period"])
    assert (grace, DRAIN_SECONDS) == (50, 20)
    assert grace > LAUNCH_SECONDS + DRAIN_SECONDS + FAREWELL_SECONDS
    assert LAUNCH_SECONDS + DRAIN_SECONDS < WORKER_GRACE_SECONDS < grace


def test_nothing_is_published_beyond_this_machine(services: dict[str, dict[str, Any]]) -> None:
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert len(published) == 3
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert not any("network_mode" in service or service.get("privileged") for service in services.values())


def test_no_secret_has_a_value_or_a_default_here(compose: dict[str, Any], services: dict[str, dict[str, Any]]) -> None:
    text = COMPOSE.read_text()
    assert re.findall(r"\$\{(POSTGRES_PASSWORD)([^}]*)\}", text)
    assert all(rest.startswith(":?") for _, rest in re.findall(r"\$\{(POSTGRES_PASSWORD)([^}]*)\}", text))
    for name, service in services.items():
        for variable, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|PWD|TOKEN|SECRET", variable) and not variable.endswith("_FILE"):
                assert value == "${POSTGRES_PASSWORD:?set it in .env}", (name, variable)
    assert compose["secrets"] == {
        "api_token": {"environment": "ALMANAC_API_TOKEN"},
        "secret_key": {"environment": "ALMANAC_SECRET_KEY"},
    }
    lines = (ROOT / ".env.example").read_text().splitlines()
    example = dict(line.split("=") for line in lines if line and not line.startswith("#"))
    assert example == dict.fromkeys(SECRETS, "")


def test_token_and_key_are_for_their_own_user_alone(services: dict[str, dict[str, Any]]) -> None:
    owned = {"uid": "10001", "gid": "10001", "mode": 0o400}
    token, key = {"source": "api_token", **owned}, {"source": "secret_key", **owned}
    assert (services["api"]["secrets"], services["worker"]["secrets"]) == ([token, key], [key])
    files = {services[name]["environment"]["ALMANAC_SECRET_KEY_FILE"] for name in ("api", "worker")}
    assert files == {"/run/secrets/secret_key"}
    assert "USER 10001:10001" in dockerfile()
    assert services["api"]["environment"]["ALMANAC_TOKEN_FILE"] == "/run/secrets/api_token"  # noqa: S105


def test_workers_can_be_many_and_share_the_run_folders(services: dict[str, dict[str, Any]]) -> None:
    worker = services["worker"]
    assert "container_name" not in worker
    assert "ports" not in worker
    storage = worker["environment"]["ALMANAC_STORAGE"]
    assert worker["volumes"] == [f"storage:{storage}"]
    assert services["api"]["volumes"] == [f"storage:{storage}:ro"]
    assert f"install --directory --owner almanac --group almanac --mode 0750 {storage}" in dockerfile()


def test_our_own_parts_run_without_powers(services: dict[str, dict[str, Any]]) -> None:
    for name in ALMANAC:
        assert services[name]["cap_drop"] == ["ALL"]
        assert services[name]["security_opt"] == ["no-new-privileges:true"]
        assert services[name]["init"] is True


def test_the_api_is_asked_whether_it_is_ready(services: dict[str, dict[str, Any]]) -> None:
    port = services["api"]["environment"]["ALMANAC_API_PORT"]
    assert f"http://127.0.0.1:{port}{READY_PATH}" in services["api"]["healthcheck"]["test"][-1]


def dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text().replace("\\\n", "")


def test_the_image_has_locked_packages_and_no_root() -> None:
    lines = dockerfile().splitlines()
    installs = [line for line in lines if "pip install" in line]
    assert len(installs) == 2
    assert "--require-hashes --no-deps --requirement requirements/run.txt" in " ".join(installs[0].split())
    assert "--no-deps --no-build-isolation" in installs[1]
    users = [line for line in lines if line.startswith("USER")]
    assert users == ["USER 10001:10001"]
    assert lines.index(users[0]) > max(i for i, line in enumerate(lines) if line.startswith(("RUN", "COPY")))
    assert all(line.startswith("CMD [") for line in lines if line.startswith(("CMD", "ENTRYPOINT")))


def test_the_image_gets_every_package_and_nothing_private() -> None:
    ignore = (ROOT / ".dockerignore").read_text().split()
    assert ignore[0] == "*"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {name.rstrip("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    let_in = {line[1:] for line in ignore if line.startswith("!")}
    assert let_in - packages == {"examples", "requirements/run.txt", "pyproject.toml", "README.md"}
    assert packages <= let_in


@pytest.mark.parametrize("lock", ["run", "dev"])
def test_the_locks_have_hashes_and_name_no_place_to_download_from(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    requirements = re.split(r"\n(?=\S)", text.strip())
    assert len(requirements) > 40
    for requirement in requirements:
        assert re.match(r"[a-z0-9-]+(\[[a-z,]+\])?==\S+( ; .*)? \\\n +--hash=sha256:[0-9a-f]{64}", requirement), (
            requirement
        )
    assert "://" not in text
    assert "index" not in re.sub(r"--hash=\S+", "", text)


def test_the_locks_hold_all_that_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = {"run": project["project"]["dependencies"], "dev": project["dependency-groups"]["dev"]}
    asked["dev"] = asked["run"] + asked["dev"]
    for lock, requirements in asked.items():
        text = (ROOT / "requirements" / f"{lock}.txt").read_text()
        locked = set(re.findall(r"^([a-z0-9-]+)", text, flags=re.MULTILINE))
        assert {re.split(r"[\[<>=]", requirement)[0] for requirement in requirements} <= locked, "run scripts/lock"


@pytest.mark.stack
async def test_the_registration_gives_temporal_what_the_embedded_stack_gives_it(
    tmp_path: Path, services: dict[str, dict[str, Any]]
) -> None:
    """On a server that doesn't know the namespace, and once more on one that does."""
    namespace = services["worker"]["environment"]["ALMANAC_TEMPORAL_NAMESPACE"]
    server = TemporalServer(tmp_path, port=free_port(), ui_port=None, namespace="other")
    await server.start()
    try:
        for _ in range(2):
            register(services["temporal-namespace"], server.address)
        client = await Client.connect(server.address, namespace=namespace)
        known = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace=namespace))
        assert set(known.custom_attributes) == set(SEARCH_ATTRIBUTES)
    finally:
        await server.stop()


def register(service: dict[str, Any], address: str) -> None:
    (script,) = service["command"]
    path = f"{temporal_binary().parent}:{os.environ['PATH']}"
    environment = {**service["environment"], "TEMPORAL_ADDRESS": address, "PATH": path}
    argv = [*service["entrypoint"], script.replace("$$", "$")]
    subprocess.run(argv, env=environment, check=True, capture_output=True, timeout=60)
