"""Weights by URI: each machine fetches a file once, keeps few, verifies it, and needs neither the path nor a secret."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from policy.published_weights import (
    PublishedWeights,
    WeightsRejected,
    current_weights,
    for_others,
    on_this_node,
    put_in_store,
    write_published,
)
from policy.vllm.inside.waymark_files import KEPT, NotFetched, cached, fetch_url, is_url
from policy.weights import read_weights, write_weights
from records.stores.working_copy import is_address
from tests.records.stores.s3_server import s3_server

URI = "s3://waymark-tests/published"


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    with s3_server() as environment:
        yield environment


@pytest.fixture(autouse=True)
def on_a_machine_of_its_own(tmp_path: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("WAYMARK_NODE_FOLDER", str(tmp_path / "server"))


def written(folder: Path, version: int) -> PublishedWeights:
    folder.mkdir(exist_ok=True)
    return write_weights({"w": torch.full((4,), float(version))}, folder / f"{version}.safetensors", version)


def value(weights: PublishedWeights) -> float:
    contents = read_weights(weights)
    assert isinstance(contents, dict)
    return float(contents["w"][0])


def test_a_server_gets_the_file_though_the_learners_path_is_not_there(tmp_path: Path) -> None:
    weights = written(tmp_path / "learner", 1)
    stored = put_in_store(weights, URI)
    os.remove(weights.path)
    assert is_address(stored.path)
    here = on_this_node(stored)
    assert (value(here), here.version, here.checksum) == (1.0, 1, weights.checksum)
    assert Path(here.path).is_relative_to(tmp_path / "server")
    write_published(stored, tmp_path / "current.json")
    assert current_weights(tmp_path / "current.json") == stored, "what a restarted server reads"


def test_a_folder_that_all_see_is_a_store_too(tmp_path: Path) -> None:
    stored = put_in_store(written(tmp_path / "learner", 1), str(tmp_path / "shared"))
    os.remove(tmp_path / "learner" / "1.safetensors")
    assert value(on_this_node(stored)) == 1.0
    assert for_others(stored, 60.0) == stored, "whoever sees the folder needs no link"


def test_a_machine_and_the_store_keep_few_files(tmp_path: Path) -> None:
    for version in range(1, 5):
        stored = put_in_store(written(tmp_path / "learner", version), URI)
        assert value(on_this_node(stored)) == version
    assert len(list((tmp_path / "server").rglob("*.safetensors"))) == KEPT
    early = replace(stored, path=stored.path.replace("000004", "000001"), checksum=written(tmp_path, 1).checksum)
    with pytest.raises(WeightsRejected, match="weights of version 4"):
        on_this_node(early)


def test_what_is_in_the_store_is_held_against_its_checksum(tmp_path: Path) -> None:
    stored = put_in_store(written(tmp_path / "learner", 1), URI)
    other = put_in_store(written(tmp_path / "learner", 2), URI)
    link = for_others(other, 60.0).path
    with pytest.raises(NotFetched, match="expected checksum"):
        cached(tmp_path / "cache", stored.checksum, lambda target: fetch_url(link, target))
    assert list((tmp_path / "cache").glob("*.safetensors")) == []


def test_servers_of_others_get_a_link_that_opens_one_file_and_says_no_secret_in_errors(
    tmp_path: Path, s3: dict[str, str]
) -> None:
    weights = written(tmp_path / "learner", 1)
    linked = for_others(put_in_store(weights, URI), 60.0)
    assert linked.path.startswith(s3["AWS_ENDPOINT_URL"])
    assert s3["AWS_SECRET_ACCESS_KEY"] not in linked.path
    file = cached(tmp_path / "cache", weights.checksum, lambda target: fetch_url(linked.path, target))
    assert value(replace(weights, path=str(file))) == 1.0
    again = cached(tmp_path / "cache", weights.checksum, lambda target: pytest.fail("it is there"))
    assert again == file
    gone = linked.path.replace("actor-000001", "actor-000009")
    with pytest.raises(NotFetched, match="cannot fetch") as refused:
        fetch_url(gone, tmp_path / "nothing")
    assert "Signature" not in str(refused.value)


def test_a_fetch_that_was_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def torn(target: Path) -> None:
        target.write_bytes(b"half")
        raise NotFetched("the connection was cut")

    with pytest.raises(NotFetched, match="cut"):
        cached(tmp_path / "cache", "0" * 64, torn)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://host/weights", "/weights", "s3://bucket/weights"])
def test_nothing_but_http_is_fetched_by_url(place: str) -> None:
    assert not is_url(place)
