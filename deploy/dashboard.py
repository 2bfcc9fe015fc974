"""Write Grafana's dashboard and Prometheus' alerts from the table of metrics: ``python deploy/dashboard.py``.

They lie in ``deploy/kubernetes/components/monitoring``; a test compares them with what this makes, and another holds
every metric that they name against what a real run told Prometheus.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from telemetry import table
from telemetry.table import Metric, Type

MONITORING = Path(__file__).resolve().parent / "kubernetes" / "components" / "monitoring"
DASHBOARD, ALERTS = MONITORING / "dashboard.json", MONITORING / "alerts.yaml"
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_RUN = 'run=~"$run"'
_WIDTH, _HEIGHT = 8, 7
_SCHEMA = 39
"""Of Grafana 10 and later."""


def rate(metric: Metric, by: str, more: str = "") -> str:
    """Return a counter's rate a second, summed; counters of actors that are gone stay, so only rates are shown."""
    assert metric.type is Type.COUNTER
    return f"sum by ({by}) (rate({metric.series}{{{_RUN}{more}}}[$__rate_interval]))"


def quantile(metric: Metric, share: float, by: str = "environment") -> str:
    """Return a histogram's quantile; Ray tells sums from the middles of buckets, so no mean is shown."""
    assert metric.type is Type.HISTOGRAM
    inner = f"sum by (le, {by}) (rate({metric.series}_bucket{{{_RUN}}}[$__rate_interval]))"
    return f"histogram_quantile({share}, {inner})"


def level(metric: Metric, more: str = "") -> str:
    """Return a gauge."""
    assert metric.type is Type.GAUGE
    return f"{metric.series}{{{_RUN}{more}}}"


def _both(metric: Metric, by: str = "environment") -> list[tuple[str, str]]:
    return [(quantile(metric, 0.5, by), f"p50 {{{{{by}}}}}"), (quantile(metric, 0.95, by), f"p95 {{{{{by}}}}}")]


PANELS: dict[str, list[tuple[str, str, list[tuple[str, str]]]]] = {
    "The run": [
        ("Phase", "none", [(level(table.PHASE), "{{run}}")]),
        ("Stage", "none", [(level(table.STAGE) + " == 1", "{{stage}}")]),
        ("Newest stage of a kind", "s", [(level(table.STAGE_SECONDS), "{{stage}}")]),
        ("Held-out success", "percentunit", [(level(table.SUCCESS), "{{split}}")]),
        ("Losses", "none", [(level(table.LOSS), "{{model}}")]),
        ("Updates of the training", "none", [(level(table.UPDATES), "{{state}}")]),
        ("Tokens learned from", "none", [(level(table.LEARNED_TOKENS), "{{run}}")]),
        ("Replay buffer", "none", [(level(table.REPLAY), "{{part}}"), (level(table.REPLAYED), "learned from again")]),
        (
            "Workers", "none",
            [
                (level(table.WORKERS), "ready"),
                (level(table.AWAITED_NODES), "{{role}} without a node"),
                (f"increase({table.WORKER_LOSSES.series}{{{_RUN}}}[1h])", "lost in 1 h"),
            ],
        ),
    ],
    "Episodes": [
        ("Steps", "ops", [(rate(table.STEPS, "environment, action"), "{{environment}} {{action}}")]),
        ("Steps of rollouts by staleness", "ops", [(rate(table.ROLLOUT_STEPS, "staleness"), "{{staleness}} versions")]),
        ("Episodes by outcome", "ops", [(rate(table.EPISODES, "source, outcome"), "{{source}} {{outcome}}")]),
        ("Attempts that failed", "ops", [(rate(table.ATTEMPT_FAILURES, "kind, code"), "{{kind}} {{code}}")]),
        ("Episodes of the stage", "none", [(level(table.QUEUE), "{{state}}")]),
        ("Tokens of workers", "ops", [
            (rate(table.PROMPT_TOKENS, "run"), "prompts"), (rate(table.ACTION_TOKENS, "run"), "actions"),
        ]),
        ("An episode", "s", _both(table.EPISODE_SECONDS, "source")),
        ("A reset", "s", _both(table.RESET_SECONDS)),
        ("An action", "s", _both(table.STEP_SECONDS)),
        ("A decision", "s", _both(table.POLICY_SECONDS, "source")),
        ("A verdict", "s", _both(table.JUDGE_SECONDS)),
        ("Until durable", "s", _both(table.SHARD_SECONDS)),
    ],
    "Policy servers": [
        ("Version by server", "none", [
            (level(table.SERVED_VERSION), "{{server}}"), (level(table.PUBLISHED_VERSION), "published"),
        ]),
        ("Requests", "none", [(level(table.SERVER_QUEUE), "{{server}} {{state}}")]),
        ("Tokens of servers", "ops", [(rate(table.SERVER_TOKENS, "server, part"), "{{server}} {{part}}")]),
        ("Gap to the learner", "none", [(level(table.PROBE_GAP), "{{server}}")]),
    ],
    "Judges": [
        ("Questions by answer", "ops", [(rate(table.JUDGE_QUESTIONS, "model, answer"), "{{model}} {{answer}}")]),
        ("Requests", "ops", [
            (rate(table.JUDGE_REQUESTS, "model"), "{{model}}"),
            (rate(table.JUDGE_RETRIES, "model"), "{{model}} again"),
            (rate(table.JUDGE_NONSENSE, "model"), "{{model}} nonsense"),
        ]),
        ("Tokens of models", "ops", [(rate(table.JUDGE_TOKENS, "model, part"), "{{model}} {{part}}")]),
        ("US dollars an hour", "currencyUSD", [("3600 * " + rate(table.JUDGE_COST, "model"), "{{model}}")]),
        ("A request", "s", _both(table.JUDGE_REQUEST_SECONDS, "model")),
    ],
    "Sites": [
        ("Answers", "reqps", [(rate(table.SITE_REQUESTS, "site, status"), "{{site}} {{status}}")]),
        ("An answer", "s", _both(table.SITE_SECONDS, "site")),
        ("Open sessions", "none", [(level(table.SITE_SESSIONS), "{{run}}")]),
    ],
}  # fmt: skip
"""By row: title, unit, and expressions with their legends."""


def _increase(metric: Metric, by: str, more: str = "", over: str = "15m") -> str:
    return f"sum by ({by}) (increase({metric.series}{more}[{over}]))"


def _alert(name: str, expression: str, wait: str, severity: str, summary: str, advice: str) -> dict[str, Any]:
    return {
        "alert": f"Waymark{name}",
        "expr": expression,
        "for": wait,
        "labels": {"severity": severity},
        "annotations": {"summary": summary, "description": advice},
    }


_FAILED, _ENDED = _increase(table.ATTEMPT_FAILURES, "run"), _increase(table.EPISODES, "run")
_PLAYING = f'max by (run) ({table.STAGE.series}{{stage=~"rollouts|evaluate"}}) == 1'
_MOVING = f"sum by (run) (rate({table.STEPS.series}[15m])) > 0"
_UNANSWERED = _increase(table.JUDGE_QUESTIONS, "run, model", '{answer="none"}')
_ERRORS = _increase(table.SITE_REQUESTS, "run, site", '{status="5xx"}')

ALERT_RULES: list[dict[str, Any]] = [
    _alert(
        "AttemptsFail", f"{_FAILED} > 0.2 * ({_FAILED} + {_ENDED}) and {_FAILED} > 10", "5m", "warning",
        "A fifth of the attempts of {{ $labels.run }} fail.",
        "The panel of attempts that failed names the codes; docs/reliability.md says what they mean.",
    ),
    _alert(
        "NothingMoves", f"({_PLAYING}) unless on (run) ({_MOVING})", "15m", "critical",
        "{{ $labels.run }} plays, but takes no step.",
        "Are workers ready, do servers answer? The run stops by itself after rollout.stall_timeout_s.",
    ),
    _alert(
        "ServerBehind",
        f"{table.SERVED_VERSION.series} < on (run) group_left () max by (run) ({table.PUBLISHED_VERSION.series})",
        "10m", "warning", "{{ $labels.server }} of {{ $labels.run }} serves version {{ $value }}, which is an old one.",
        "It serves no reply that counts until it has the newest weights; look at its log.",
    ),
    _alert(
        "WorkersLost", f"increase({table.WORKER_LOSSES.series}[1h]) > 5", "0m", "warning",
        "{{ $labels.run }} lost {{ $value }} rollout workers within an hour.",
        "Look at the memory of their machines, and for preempted ones.",
    ),
    _alert(
        "JudgeSilent", f"{_UNANSWERED} > 0.1 * {_increase(table.JUDGE_QUESTIONS, 'run, model')}", "10m", "warning",
        "Model {{ $labels.model }} leaves a tenth of the questions of {{ $labels.run }} open.",
        "Is its endpoint up, its budget spent, its limit of requests too high?",
    ),
    _alert(
        "SitesFail", f"{_ERRORS} > 0.01 * {_increase(table.SITE_REQUESTS, 'run, site')}", "5m", "warning",
        "{{ $labels.site }} of {{ $labels.run }} answers with server errors.", "Look at the log of the sites.",
    ),
    _alert(
        "LossIsNoNumber", f"{table.LOSS.series} != {table.LOSS.series}", "0m", "critical",
        "The loss of {{ $labels.model }} of {{ $labels.run }} is not a number.",
        "End the run, go back to the checkpoint before, and lower the learning rate.",
    ),
]  # fmt: skip


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana reads it."""
    panels: list[dict[str, Any]] = []
    top = 0
    for row, inside in PANELS.items():
        panels.append(_placed({"type": "row", "title": row, "collapsed": False, "panels": []}, panels, 0, top, 24, 1))
        top += 1
        for number, (title, unit, shown) in enumerate(inside):
            left = number % 3 * _WIDTH
            panels.append(_placed(_panel(title, unit, shown), panels, left, top, _WIDTH, _HEIGHT))
            top += _HEIGHT if left + _WIDTH == 24 or number == len(inside) - 1 else 0
    label = f"label_values({table.PHASE.series}, run)"
    choices = [
        {"type": "datasource", "name": "source", "label": "Prometheus", "query": "prometheus"},
        {
            "type": "query", "name": "run", "label": "Run", "datasource": _SOURCE, "query": label, "refresh": 2,
            "multi": True, "includeAll": True,
        },
    ]  # fmt: skip
    return {
        "uid": "waymark",
        "title": "Waymark",
        "tags": ["waymark"],
        "timezone": "browser",
        "editable": True,
        "schemaVersion": _SCHEMA,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": choices},
        "panels": panels,
    }


def alerts() -> dict[str, Any]:
    """Return the rules as Prometheus' operator reads them."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "waymark"},
        "spec": {"groups": [{"name": "waymark", "rules": ALERT_RULES}]},
    }


def files() -> dict[Path, str]:
    """Return what is written, by its place."""
    head = "# Made by deploy/dashboard.py. A Prometheus that selects rules by label needs that label here.\n"
    rules = yaml.safe_dump(alerts(), sort_keys=False, width=120)
    return {DASHBOARD: json.dumps(dashboard(), indent=1) + "\n", ALERTS: head + rules}


def _panel(title: str, unit: str, shown: list[tuple[str, str]]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + at), "datasource": _SOURCE, "expr": expression, "legendFormat": legend, "range": True}
        for at, (expression, legend) in enumerate(shown)
    ]
    field = {"defaults": {"unit": unit, "custom": {"drawStyle": "line", "fillOpacity": 10}}, "overrides": []}
    return {"type": "timeseries", "title": title, "datasource": _SOURCE, "fieldConfig": field, "targets": targets}


def _placed(
    panel: dict[str, Any], before: list[dict[str, Any]], left: int, top: int, width: int, height: int
) -> dict[str, Any]:
    return {"id": len(before) + 1, "gridPos": {"x": left, "y": top, "w": width, "h": height}, **panel}


if __name__ == "__main__":
    for path, content in files().items():
        path.write_text(content, encoding="utf-8")
