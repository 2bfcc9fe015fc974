"""Dashboard and alerts are made from the table of metrics, and Grafana's and Prometheus' own programs read them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from telemetry.prometheus_sink import PrometheusSink
from telemetry.table import METRICS, Type
from tests.deploy.generated import generator
from tests.deploy.manifests import ROOT, Document, example, of_kind, pods, selects

GUIDE = ROOT / "docs" / "guides" / "metrics.md"
MONITORED = ("standing", "webarena")


def panels() -> list[dict[str, Any]]:
    return [panel for panel in generator().dashboard()["panels"] if panel["type"] != "row"]


def test_what_lies_in_the_repository_is_made_from_the_table() -> None:
    for path, content in generator().files().items():
        assert path.read_text(encoding="utf-8") == content, "run `python deploy/dashboard.py`"


def test_the_guide_has_the_table() -> None:
    from telemetry.table import table_page

    assert table_page() in GUIDE.read_text(encoding="utf-8"), "run `make docs`"


def test_every_metric_is_shown() -> None:
    shown = json.dumps(generator().dashboard())
    assert [metric.series for metric in METRICS if metric.series not in shown] == []


def test_every_expression_filters_by_run() -> None:
    for panel in panels():
        for target in panel["targets"]:
            named = re.findall(r"(?:ray_)?waymark_\w+", target["expr"])
            assert target["expr"].count('run=~"$run"') == len(named) > 0, target["expr"]


def test_no_panel_covers_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in generator().dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    assert max(x for x, _ in taken) < 24


def read_by_grafana(made: dict[str, Any]) -> dict[str, Any]:
    """Return what Grafana's own types keep of a dashboard."""
    register_default_plugins()
    kept: dict[str, Any] = json.loads(json.dumps(Dashboard.from_json(made), cls=JSONEncoder))
    return kept


def lost(given: Any, kept: Any, where: str = "dashboard") -> list[str]:
    """Return what of ``given`` is not in ``kept``; what Grafana adds is its own business."""
    if isinstance(given, dict):
        if not isinstance(kept, dict):
            return [where]
        return [said for key in given for said in lost(given[key], kept.get(key), f"{where}.{key}")]
    if isinstance(given, list):
        if not isinstance(kept, list) or len(kept) != len(given):
            return [where]
        return [said for at, pair in enumerate(zip(given, kept, strict=True)) for said in lost(*pair, f"{where}.{at}")]
    return [] if given == kept else [where]


def test_grafanas_types_keep_all_of_the_dashboard() -> None:
    made = generator().dashboard()
    assert lost(made, read_by_grafana(made)) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda made: made.update(titel="Waymark"), "dashboard.titel"),
        (lambda made: made["panels"][1].update(gridpos={}), "dashboard.panels.1.gridpos"),
        (
            lambda made: made["panels"][1]["targets"][0].update(expression="1"),
            "dashboard.panels.1.targets.0.expression",
        ),
        (lambda made: made["panels"][1]["fieldConfig"]["defaults"]["custom"].update(drawstyle="line"), "drawstyle"),
    ],
)
def test_a_slip_in_a_name_is_lost(change: Any, found: str) -> None:
    made = generator().dashboard()
    change(made)
    (said,) = lost(made, read_by_grafana(made))
    assert said.endswith(found)


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("no promtool: `apt-get install prometheus`")
    return found


def told(promtool: str, *words: str, given: str = "") -> tuple[int, str]:
    done = subprocess.run([promtool, *words], input=given, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def rules(folder: Path, groups: list[Document]) -> str:
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": groups}))
    return str(path)


def shown_as_rules() -> list[Document]:
    """The dashboard's expressions as recording rules, with Grafana's variables filled in."""
    every = [target["expr"] for panel in panels() for target in panel["targets"]]
    filled = [e.replace("$run", ".*").replace("$__rate_interval", "5m") for e in every]
    return [{"name": "shown", "rules": [{"record": f"shown:{at}", "expr": e} for at, e in enumerate(filled)]}]


def test_prometheus_reads_the_alerts_and_every_expression_of_the_dashboard(promtool: str, tmp_path: Path) -> None:
    groups = [*generator().alerts()["spec"]["groups"], *shown_as_rules()]
    code, said = told(promtool, "check", "rules", rules(tmp_path, groups))
    assert code == 0, said
    groups[0]["rules"][0]["expr"] += ")"
    code, said = told(promtool, "check", "rules", rules(tmp_path, groups))
    assert code != 0


def test_prometheus_finds_nothing_wrong_with_names_and_help(promtool: str) -> None:
    sink = PrometheusSink()
    for metric in METRICS:
        sink.record(metric, 1.0, {"run": "r", **{label.name: "x" for label in metric.labels}})
    code, said = told(promtool, "check", "metrics", given=sink.text())
    assert (code, said) == (0, "")
    code, said = told(promtool, "check", "metrics", given="# TYPE waymark_steps counter\nwaymark_steps 1\n")
    assert code != 0
    assert 'should have "_total" suffix' in said


def _series(labels: str, values: str) -> Document:
    return {"series": labels, "values": values}


FIRES: dict[str, list[Document]] = {
    "WaymarkAttemptsFail": [
        _series('ray_waymark_attempt_failures_total{run="r"}', "0+2x60"),
        _series('ray_waymark_episodes_total{run="r"}', "0+4x60"),
    ],
    "WaymarkNothingMoves": [
        _series('waymark_stage{run="r",stage="rollouts"}', "1x60"),
        _series('ray_waymark_steps_total{run="r"}', "7x60"),
    ],
    "WaymarkServerBehind": [
        _series('ray_waymark_served_version{run="r",server="server-0"}', "1x60"),
        _series('waymark_published_version{run="r"}', "2x60"),
    ],
    "WaymarkWorkersLost": [_series('waymark_worker_losses_total{run="r"}', "0+1x60")],
    "WaymarkJudgeSilent": [
        _series('ray_waymark_judge_questions_total{run="r",model="m",answer="none"}', "0+1x60"),
        _series('ray_waymark_judge_questions_total{run="r",model="m",answer="model"}', "0+4x60"),
    ],
    "WaymarkSitesFail": [
        _series('waymark_site_requests_total{run="r",site="shop",status="5xx"}', "0+1x60"),
        _series('waymark_site_requests_total{run="r",site="shop",status="2xx"}', "0+9x60"),
    ],
    "WaymarkLossIsNoNumber": [_series('waymark_loss{run="r",model="actor"}', "NaN " * 61)],
}
"""Series, a value a minute, at which an alert fires."""

STILL: dict[str, list[Document]] = {
    "WaymarkAttemptsFail": [
        _series('ray_waymark_attempt_failures_total{run="r"}', "0+2x60"),
        _series('ray_waymark_episodes_total{run="r"}', "0+40x60"),
    ],
    "WaymarkNothingMoves": [
        _series('waymark_stage{run="r",stage="rollouts"}', "1x60"),
        _series('ray_waymark_steps_total{run="r"}', "0+7x60"),
    ],
    "WaymarkServerBehind": [
        _series('ray_waymark_served_version{run="r",server="server-0"}', "2x60"),
        _series('waymark_published_version{run="r"}', "2x60"),
    ],
    "WaymarkWorkersLost": [_series('waymark_worker_losses_total{run="r"}', "3x60")],
    "WaymarkJudgeSilent": [_series('ray_waymark_judge_questions_total{run="r",model="m",answer="model"}', "0+4x60")],
    "WaymarkSitesFail": [_series('waymark_site_requests_total{run="r",site="shop",status="2xx"}', "0+9x60")],
    "WaymarkLossIsNoNumber": [_series('waymark_loss{run="r",model="actor"}', "0.5x60")],
}
"""Series at which it does not."""


def test_every_alert_fires_when_it_should_and_only_then(promtool: str, tmp_path: Path) -> None:
    made = generator().alerts()["spec"]["groups"]
    names = [rule["alert"] for rule in made[0]["rules"]]
    assert set(FIRES) == set(STILL) == set(names)
    rules(tmp_path, made)
    for cases, fires in ((FIRES, True), (STILL, False)):
        for name, series in cases.items():
            # Whatever an alert says counts: with an empty expectation promtool fails where one fires.
            case = {"eval_time": "55m", "alertname": name, "exp_alerts": []}
            tests = [{"interval": "1m", "input_series": series, "alert_rule_test": [case]}]
            path = tmp_path / "test.yaml"
            path.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": tests}))
            code, said = told(promtool, "test", "rules", str(path))
            assert (code != 0) == fires, (name, said)
            assert not fires or f'alertname="{name}"' in said, said


@pytest.mark.parametrize("name", MONITORED)
def test_what_is_scraped_is_a_port_of_a_pod_that_prometheus_may_reach(name: str) -> None:
    documents = example(name)
    (monitor,) = of_kind(documents, "PodMonitor")
    (policy,) = [d for d in of_kind(documents, "NetworkPolicy") if d["metadata"]["name"] == "monitored"]
    let_in = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    chosen = [pod for _, labels, pod in pods(documents) if selects(monitor["spec"]["selector"], labels)]
    ports = {p["name"]: p["containerPort"] for pod in chosen for c in pod["containers"] for p in c.get("ports", [])}
    scraped = {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]}
    assert scraped == {"metrics", "driver-metrics"}
    # KubeRay adds its own port to containers that lack it.
    assert {ports.get(port) for port in scraped} <= let_in


def test_the_recipe_of_webarena_listens_where_it_is_scraped() -> None:
    recipe = yaml.safe_load((ROOT / "deploy" / "kubernetes" / "examples" / "webarena" / "recipe.yaml").read_text())
    (cluster,) = of_kind(example("webarena"), "RayJob")
    head = cluster["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    (port,) = [p["containerPort"] for p in head["ports"] if p["name"] == "driver-metrics"]
    assert recipe["monitors"]["prometheus"] == {"host": "0.0.0.0", "port": port}


@pytest.mark.parametrize("name", MONITORED)
def test_grafana_gets_the_dashboard(name: str) -> None:
    maps = [d for d in of_kind(example(name), "ConfigMap") if d["metadata"]["name"] == "waymark-dashboard"]
    (held,) = maps
    assert held["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(held["data"]["dashboard.json"]) == generator().dashboard()
    assert {metric.type for metric in METRICS} == set(Type)
