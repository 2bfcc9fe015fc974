"""Every monitor keeps the contract; the metrics log and TensorBoard hold what they promise."""

from __future__ import annotations

import math
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from cluster.errors import ManifestError, RecipeError
from cluster.monitors.monitor import MONITORS, Monitor, MonitorKind, Monitors
from cluster.monitors.prometheus import Prometheus, PrometheusSettings
from cluster.monitors.tensorboard import TensorBoardSettings
from cluster.recipe.recipe import build_recipe
from cluster.run_folder.metrics_log import MetricsLog, MetricsLogSettings, read_metrics
from tests.not_files import NOT_FILES, at_once

TAKEN: list[tuple[int, str, dict[str, float]]] = []


class Remembering:
    """A monitor of somebody else's, found as ``module:name``."""

    def __init__(self, out: Path, options: MetricsLogSettings) -> None:
        TAKEN.clear()

    def numbers(self, phase: int, stage: str, values: dict[str, float]) -> None:
        TAKEN.append((phase, stage, dict(values)))

    def set_aside(self, stages: list[tuple[int, str]], folder: Path) -> None:
        TAKEN[:] = [taken for taken in TAKEN if taken[:2] not in stages]

    def links(self) -> dict[str, str]:
        return {}

    def close(self) -> None:
        TAKEN.append((-1, "closed", {}))


def written(folder: Path) -> dict[Path, bytes]:
    """Return the content of every file under ``folder``."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


REMEMBERING = MonitorKind(MetricsLogSettings, Remembering)
BOTH: dict[str, object] = {"metrics_log": MetricsLogSettings(), "tensorboard": TensorBoardSettings()}
WRITING = {"metrics_log", "tensorboard"}
MINE = f"{__name__}:REMEMBERING"


def test_a_split_that_is_evaluated_without_a_verdict_has_no_share_any_more(tmp_path: Path) -> None:
    """The old share would be told as that of the newest evaluation; sites within a split have no gauge of their own."""
    monitor = Prometheus(tmp_path, PrometheusSettings())
    try:
        (address,) = monitor.links().values()

        def shares() -> list[str]:
            with urllib.request.urlopen(address, timeout=10) as page:
                told = page.read().decode().splitlines()
            return sorted(line.split("{")[1] for line in told if line.startswith("waymark_success_share{"))

        monitor.numbers(1, "evaluate", {"splits.test.success": 0.5, "splits.test.n": 8.0, "splits.long.n": 0.0})
        first = shares()
        monitor.numbers(2, "evaluate", {"splits.test.n": 0.0, "splits.test.by_site.shop.n": 4.0})
        second = shares()
    finally:
        monitor.close()
    assert [line.split()[-1] for line in first] == ["NaN", "0.5"]
    assert [line.split()[-1] for line in second] == ["NaN", "NaN"]


@pytest.mark.parametrize("name", [*MONITORS.own, MINE, "examples.webhook:WEBHOOK"])
def test_a_monitor_keeps_the_contract(tmp_path: Path, name: str) -> None:
    kind, out = MONITORS.find(name), tmp_path / "out"
    out.mkdir()
    monitor: Monitor = kind.start(out, kind.settings())
    values = {"actor.loss": 0.5, "ratio": math.nan, "high": math.inf}
    given = dict(values)
    monitor.numbers(0, "clone", {})
    monitor.numbers(1, "actor", values)
    monitor.numbers(1, "actor", {"actor.loss": 0.25})
    assert values == given, "what it is told is not its own to change"
    aside = out / "rollbacks" / "0001"
    monitor.set_aside([(1, "actor")], aside)
    moved = written(aside)
    monitor.set_aside([(1, "actor")], aside)
    assert written(aside) == moved, "what is set aside is set aside once"
    monitor.numbers(1, "actor", {"actor.loss": 0.125})
    monitor.close()
    before = written(out)
    assert bool(before) == (name in WRITING), "these write what they are told"
    again: Monitor = kind.start(out, kind.settings())
    again.numbers(2, "actor", {"actor.loss": 1.0})
    again.close()
    after = written(out)
    assert all(after[path].startswith(content) for path, content in before.items()), "a later start only adds"
    assert (after != before) == (name in WRITING)
    assert list(tmp_path.iterdir()) == [out], "nothing is written outside the run folder"


def test_a_recipe_names_its_monitors_and_each_is_told_every_number(tmp_path: Path) -> None:
    recipe = build_recipe({"monitors": {"metrics_log": None, MINE: {}}})
    assert list(recipe.monitors) == ["metrics_log", MINE]
    with Monitors(tmp_path, recipe.monitors) as monitors:
        monitors.numbers(1, "critics", {"value.loss": 0.5})
        monitors.numbers(1, "actor", {"actor.loss": 0.25})
        monitors.set_aside([(1, "actor")], tmp_path / "aside")
    assert TAKEN == [(1, "critics", {"value.loss": 0.5}), (-1, "closed", {})]
    assert [(line["phase"], line["stage"]) for line in read_metrics(tmp_path)] == [(1, "critics")]
    assert [line["actor.loss"] for line in read_metrics(tmp_path / "aside")] == [0.25]


@pytest.mark.parametrize(
    ("monitors", "found"),
    [
        ({"metricslog": {}}, "monitors.metricslog: expected a monitor out of metrics_log, prometheus, tensorboard"),
        ({"tensorboard": {"folder": "x"}}, "unknown key 'monitors.tensorboard.folder'"),
        ({"tensorboard": True}, "monitors.tensorboard: expected a section"),
    ],
)
def test_a_monitor_that_is_none_is_refused_by_name(monitors: dict[str, object], found: str) -> None:
    with pytest.raises(RecipeError, match=found):
        build_recipe({"monitors": monitors})


def test_metrics_go_to_lines_and_to_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with Monitors(tmp_path, BOTH) as monitors:
        monitors.numbers(1, "actor", {"loss": 0.5, "ratio": math.nan})
        monitors.numbers(7, "actor", {"loss": 0.25})
    lines = list(read_metrics(tmp_path))
    assert [(line["phase"], line["stage"], line["loss"]) for line in lines] == [(1, "actor", 0.5), (7, "actor", 0.25)]
    assert lines[0]["ratio"] is None
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("actor/loss")] == [(1, 0.5), (7, 0.25)]
    assert events.Tags()["scalars"] == ["actor/loss"]


def test_metrics_without_tensorboard_leave_no_event_files(tmp_path: Path) -> None:
    with Monitors(tmp_path, {"metrics_log": MetricsLogSettings()}) as monitors:
        monitors.numbers(0, "clone", {"loss": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_torn_line_is_left_out_and_does_not_swallow_the_next(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"phase": 0}\n{"phase": 1, "lo')
    with closing(MetricsLog(tmp_path, MetricsLogSettings())) as log:
        log.numbers(2, "learn", {"loss": 1})
    assert [line["phase"] for line in read_metrics(tmp_path)] == [0, 2]


@pytest.mark.parametrize("kind", ["a pipe", "a socket", "a folder", "a device"])
def test_what_lies_in_place_of_the_metrics_is_named_at_once(tmp_path: Path, kind: str) -> None:
    NOT_FILES[kind](tmp_path / "metrics.jsonl")
    with at_once(), pytest.raises(ManifestError, match=f"metrics.jsonl: expected a file, found {kind}"):
        MetricsLog(tmp_path, MetricsLogSettings())


def test_names_that_the_line_itself_uses_are_refused(tmp_path: Path) -> None:
    with closing(MetricsLog(tmp_path, MetricsLogSettings())) as log, pytest.raises(ValueError, match="phase"):
        log.numbers(0, "learn", {"phase": 1.0})
