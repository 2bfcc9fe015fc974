"""Metrics are off until a sink is installed; labels are those of the table, with values that are bounded."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from sites.app import create_app
from telemetry import meter, table
from telemetry.prometheus_sink import Endpoint, PrometheusSink
from telemetry.table import METRICS, OTHER, Type, table_page

PAGE_TEXT = 'Sign in "now" <b>please</b>'


@pytest.fixture
def sink() -> Iterator[PrometheusSink]:
    made = PrometheusSink()
    meter.install(made, "first")
    yield made
    meter.install(None)


def value(sink: PrometheusSink, name: str, **labels: str) -> float | None:
    return sink.registry.get_sample_value(name, {"run": "first", **labels})


def test_names_and_labels_are_told_apart_and_fit_prometheus() -> None:
    assert len({metric.series for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert metric.name.startswith("waymark_")
        assert not metric.name.endswith("_total"), "the sinks add it"
        assert (metric.type is Type.HISTOGRAM) == bool(metric.buckets)
        assert list(metric.buckets) == sorted(set(metric.buckets))
        assert "run" not in {label.name for label in metric.labels}
        assert metric.series in table_page()


def test_nothing_is_recorded_before_a_sink_is_installed() -> None:
    assert meter.run_name() == ""
    meter.record(table.WORKERS, 3)
    made = PrometheusSink()
    meter.install(made, "first")
    meter.install(None)
    meter.record(table.WORKERS, 3)
    assert made.text() == ""


def test_counters_add_gauges_are_set_and_histograms_observe(sink: PrometheusSink) -> None:
    for amount in (1, 2, 0):
        meter.record(table.WORKER_LOSSES, amount)
        meter.record(table.WORKERS, amount)
    meter.record(table.SITE_SECONDS, 0.02, site="shop")
    assert value(sink, "waymark_worker_losses_total") == 3
    assert value(sink, "waymark_workers") == 0
    assert value(sink, "waymark_site_seconds_bucket", site="shop", le="0.01") == 0
    assert value(sink, "waymark_site_seconds_bucket", site="shop", le="0.025") == 1


def test_other_labels_than_the_tables_are_an_error(sink: PrometheusSink) -> None:
    for labels in ({}, {"site": "shop"}, {"site": "shop", "state": "2xx"}, {"site": "a", "status": "2xx", "more": "x"}):
        with pytest.raises(ValueError, match="waymark_site_requests: expected labels"):
            meter.record(table.SITE_REQUESTS, **labels)


def test_a_listed_value_is_one_of_them_or_other(sink: PrometheusSink) -> None:
    meter.record(table.QUEUE, 1, state="leased")
    meter.record(table.QUEUE, 2, state=PAGE_TEXT)
    assert value(sink, "waymark_stage_episodes", state="leased") == 1
    assert value(sink, "waymark_stage_episodes", state=OTHER) == 2
    assert PAGE_TEXT not in sink.text()


def test_names_are_few_and_no_sentence(sink: PrometheusSink) -> None:
    most = table.SUCCESS.labels[0].most
    for number in range(3 * most):
        meter.record(table.SUCCESS, 1.0, split=f"split-{number}")
    meter.record(table.SUCCESS, 1.0, split=PAGE_TEXT)
    splits = {sample.labels["split"] for family in sink.registry.collect() for sample in family.samples}
    assert len(splits) == most + 1
    assert OTHER in splits
    assert PAGE_TEXT not in sink.text()


def test_an_endpoint_tells_its_own_and_what_is_forwarded_and_ends(sink: PrometheusSink) -> None:
    meter.record(table.WORKERS, 2)
    endpoint = Endpoint(sink, "127.0.0.1", 0)

    def gone() -> str:
        raise ConnectionError("nobody there")

    def scrape() -> dict[str, float]:
        with urllib.request.urlopen(endpoint.address, timeout=20) as reply:
            families = text_string_to_metric_families(reply.read().decode())
            return {sample.name: sample.value for family in families for sample in family.samples}

    with (
        meter.forwarding(lambda: "# TYPE waymark_site_sessions gauge\nwaymark_site_sessions 4\n"),
        meter.forwarding(gone),
    ):
        assert scrape() == {"waymark_workers": 2, "waymark_site_sessions": 4}
    requests = '# TYPE waymark_site_requests_total counter\nwaymark_site_requests_total{site="shop",status="%s"} %d\n'
    with (
        meter.forwarding(lambda: requests % ("2xx", 3) + requests % ("5xx", 1)),
        meter.forwarding(lambda: requests % ("2xx", 4)),
    ):
        told = urllib.request.urlopen(endpoint.address, timeout=20).read().decode()
        lines = [line for line in told.splitlines() if line.startswith("waymark_site_requests_total")]
        assert sorted(line.split()[-1] for line in lines) == ["1.0", "7.0"], "the sites of two nodes are added up"
        assert told.count("# TYPE waymark_site_requests_total") == 1
    with meter.forwarding(lambda: "no metrics at all {"):
        assert scrape() == {"waymark_workers": 2}
    with pytest.raises(OSError):
        Endpoint(PrometheusSink(), "127.0.0.1", int(endpoint.address.split(":")[-1].split("/")[0]))
    endpoint.close()
    with pytest.raises(OSError):
        scrape()


@pytest.mark.parametrize("measured", [True, False])
def test_sites_inside_a_worker_record_nothing_as_the_sites_process(sink: PrometheusSink, measured: bool) -> None:
    """A browserless worker has the sites' application in itself, and would tell it as ``ray_waymark_site_...``."""
    answer = TestClient(create_app(0, measured=measured), base_url="http://shop.localhost").get("/")
    assert answer.status_code == 200
    assert value(sink, "waymark_site_requests_total", site="shop", status="2xx") == (1 if measured else None)
