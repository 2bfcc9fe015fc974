"""What Prometheus reads of a real run parses, fits the table, and has every metric that dashboard and alerts name."""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen

import pytest
from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from cluster.monitors.prometheus import Prometheus as PrometheusMonitor
from cluster.monitors.prometheus import PrometheusSettings
from sites.app import CONTROL_HEADER
from sites.server import SiteServer
from telemetry import meter
from telemetry.table import METRICS, OTHER, Place, Type
from tests.deploy.generated import generator
from tests.e2e.command import LIMIT_S, ROOT, Run, interrupt
from tests.judges.llm_server import ModelServer, Status, model_server

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

_ADDRESS = re.compile(r"http://[\w.:\[\]-]+/metrics")
_NAMED = re.compile(r"\b(?:ray_)?waymark_\w+")
_RAYS = {"le", "Component", "NodeAddress", "SessionName", "Version", "WorkerId"}
"""Labels that Prometheus and Ray add; OpenTelemetry's begin with ``otel_``."""
NONSENSE = "I am not sure whether this page says so."


@dataclass
class Scraped:
    """The newest answer of each address, and everything that was seen in any of them."""

    families: dict[str, Family] = field(default_factory=dict)
    labels: dict[str, set[tuple[tuple[str, str], ...]]] = field(default_factory=dict)
    text: str = ""

    def scrape(self, address: str) -> None:
        with urllib.request.urlopen(address, timeout=10) as reply:
            self.text = reply.read().decode()
        for family in text_string_to_metric_families(self.text):
            for sample in family.samples:
                if _NAMED.fullmatch(sample.name):
                    self.families[sample.name] = family
                    self.labels.setdefault(sample.name, set()).add(tuple(sorted(sample.labels.items())))


def recipe(server: ModelServer) -> dict[str, object]:
    model = {
        "model": "served",
        "client": "gemini",
        "base_url": server.url,
        "key_variable": "WAYMARK_TEST_KEY",
        "usd_per_million_input": 1.0,
        "usd_per_million_output": 10.0,
        "nonsense_attempts": 1,
    }
    return {
        "run": {
            "name": "measured",
            "phases": 1,
            "environment": "tests.e2e.asked_tasks:ASKED",
            "training_tasks": 40,
            "dashboard": False,
            "evaluation": {"splits": ["test"], "tasks_per_split": 6},
        },
        "judges": {"llm": {"models": {"m": model}, "model": "m"}, "evaluators": {"answer_judge": "llm"}},
        "warm_start": {"checkpoint": str(ROOT / "cluster" / "recipes" / "tiny-cloned"), "clone": "never"},
        "curriculum": {"tasks_per_phase": 12},
        "monitors": {"metrics_log": {}, "prometheus": {}},
        "policy": {"tiny": {"vocab_size": 2048}, "max_prompt_tokens": 640, "max_new_tokens": 32},
        "rollout": {"workers": 1, "contexts_per_worker": 2, "shard_linger_s": 0.05, "failure_floor": 100},
        "learner": {"algorithm": "filtered_bc", "actor": {"epochs": 5}},
    }


def watched(process: Popen[str], scraped: Scraped) -> str:
    """Scrape what the command names until it ends; return what it said."""
    said: list[str] = []
    assert process.stdout is not None
    output = process.stdout
    reading = threading.Thread(target=lambda: said.extend(iter(output.readline, "")), daemon=True)
    reading.start()
    ends = time.monotonic() + 3 * LIMIT_S
    while process.poll() is None and time.monotonic() < ends:
        for address in _ADDRESS.findall("".join(said)):
            try:
                scraped.scrape(address)
            except (OSError, http.client.HTTPException):
                continue  # it has not begun to answer, or the run has ended
        time.sleep(0.5)
    if process.poll() is None:
        interrupt(process)
    process.wait(60)
    reading.join(10)
    return "".join(said)


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Scraped:
    """A run whose judge is in trouble at first, and the sites' process as the driver forwards it."""
    seen = Scraped()
    with pytest.MonkeyPatch.context() as patch, model_server() as server:
        patch.setenv("WAYMARK_TEST_KEY", "key-of-nobody")
        patch.setenv("RAY_metrics_report_interval_ms", "1000")
        server.script = [Status(429, (("retry-after", "1"),)), NONSENSE, NONSENSE]
        run = Run(tmp_path_factory.mktemp("measured"), recipe(server))
        process = run.start()
        said = watched(process, seen)
        assert process.returncode == 0, said + (process.stderr.read() if process.stderr else "")
    assert "Metrics of the driver: http://127.0.0.1:" in said
    assert "Metrics of actors: http://" in said
    visit_sites(tmp_path_factory.mktemp("sites"), seen)
    return seen


def visit_sites(folder: Path, seen: Scraped) -> None:
    """Let the sites' process answer, and read of it where the driver tells."""
    monitor = PrometheusMonitor(folder, PrometheusSettings())
    try:
        with SiteServer() as server, meter.forwarding(server.metrics):
            for host, path in (("shop.localhost", "/"), ("forum.localhost", "/nowhere")):
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
                connection.request("GET", path, headers={"Host": host})
                connection.getresponse().read()
                connection.close()
            seen.scrape(monitor.links()["Metrics of the driver"])
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
            connection.request("GET", "/_control/metrics", headers={CONTROL_HEADER: "wrong"})
            assert connection.getresponse().status == http.client.FORBIDDEN
            connection.close()
    finally:
        monitor.close()


def test_every_metric_that_was_seen_is_of_the_table(scraped: Scraped) -> None:
    table = {metric.series: metric for metric in METRICS}
    for name, family in scraped.families.items():
        series = re.sub(r"_(bucket|sum|count)$", "", name) if family.type != "gauge" else name
        metric = table.get(series) or table[f"{series}_total"]
        assert family.type == metric.type, name
        own = {label.name: label for label in metric.labels}
        for labels in scraped.labels[name]:
            found = {key: value for key, value in labels if key not in _RAYS and not key.startswith("otel_")}
            assert set(found) == {*own, "run"}, name
            for key, label in own.items():
                assert not label.values or found[key] in label.values, (name, labels)
                assert found[key] != OTHER, (name, labels)


def test_all_of_the_table_but_what_did_not_happen_was_seen(scraped: Scraped) -> None:
    shown = {re.sub(r"_bucket$", "", name) for name in scraped.families}
    assert {metric.series for metric in METRICS} - shown == set()


def test_labels_hold_names_of_settings_and_code(scraped: Scraped) -> None:
    values = {value for every in scraped.labels.values() for labels in every for _, value in labels}
    assert {"m", "server-0", "tests.e2e.asked_tasks:ASKED", "judge_nonsense", "shop", "4xx"} <= values
    assert not any(" " in value or "<" in value for value in values), "a page's or a model's text"


@pytest.mark.parametrize("which", ["dashboard", "alerts"])
def test_every_expression_names_metrics_that_were_seen(scraped: Scraped, which: str) -> None:
    made = generator()
    text = json.dumps(made.dashboard() if which == "dashboard" else made.alerts())
    named = set(_NAMED.findall(text))
    assert len(named) > 5
    assert named - set(scraped.families) == set()
    assert "waymark_never_seen" not in scraped.families


def test_the_driver_and_the_actors_both_told(scraped: Scraped) -> None:
    places = {metric.place for metric in METRICS for name in scraped.families if name.startswith(metric.series)}
    assert places == set(Place)
    assert {metric.type for metric in METRICS} == set(Type)
