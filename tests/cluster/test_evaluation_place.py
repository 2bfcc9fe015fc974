"""Where an evaluation works: among temporary files, or beside its result, with files that other nodes can read."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from analysis.results import GroupResult, SplitResult
from cluster import evaluation, node_checks
from cluster.errors import MissingError, RunStopped
from cluster.recipe.evaluated import as_evaluated
from cluster.recipe.recipe import Recipe, build_recipe
from cluster.run_folder.layout import RESULT, RunFolders
from cluster.run_folder.named_model import lay_out_model
from records.folder_mark import require_mark

POLICY = Path(__file__).parents[2] / "cluster" / "recipes" / "tiny-cloned"
NOTHING = SplitResult(0.5, 4, 0.15, 0.85, {"shop": GroupResult(0.5, 4, 0.15, 0.85)}, {}, {}, {})


@pytest.fixture
def worked_in(monkeypatch: pytest.MonkeyPatch) -> list[RunFolders]:
    """Stand in for Ray and for the playing; record the folders of each evaluation, and of its look at the nodes."""
    seen: list[RunFolders] = []

    @contextmanager
    def no_ray(recipe: Recipe) -> Iterator[str]:
        yield ""

    def played(recipe: Recipe, folders: RunFolders, steps_factor: int) -> SplitResult:
        require_mark(folders.mark)
        folders.episodes.mkdir()
        seen.append(folders)
        return NOTHING

    monkeypatch.setattr(evaluation, "ray_runtime", no_ray)
    monkeypatch.setattr(evaluation, "_played", played)
    monkeypatch.setattr(node_checks, "require_equipped", lambda recipe, mark: require_mark(mark))
    return seen


def recipe(*overrides: str) -> Recipe:
    return as_evaluated(build_recipe({}, list(overrides)), policy=POLICY, split="test")


def test_on_a_machine_of_its_own_it_works_among_temporary_files(worked_in: list[RunFolders], tmp_path: Path) -> None:
    evaluation.evaluate(recipe(), keep=tmp_path / "kept")
    (folders,) = worked_in
    assert folders.out.parent == Path(tempfile.gettempdir()).resolve()
    assert not folders.out.exists()
    assert (tmp_path / "kept" / RESULT).is_file()


def test_on_a_cluster_it_works_beside_its_result_and_leaves_nothing_else(
    worked_in: list[RunFolders], tmp_path: Path
) -> None:
    shared = tmp_path / "shared" / "evals"
    evaluation.evaluate(recipe("run.resources.address=head:6379"), keep=shared / "kept")
    (folders,) = worked_in
    assert folders.out.parent == shared
    assert os.listdir(shared) == ["kept"]
    assert sorted(os.listdir(shared / "kept")) == ["episodes", RESULT]


def test_nodes_that_do_not_see_the_folder_end_it_before_anything_starts(
    worked_in: list[RunFolders], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(recipe: Recipe, mark: str) -> Any:
        raise MissingError("node 10.0.0.2, for a rollout worker: run folder: it is not there")

    monkeypatch.setattr(node_checks, "require_equipped", lacking)
    with pytest.raises(MissingError, match=r"node 10\.0\.0\.2"):
        evaluation.evaluate(recipe("run.resources.address=auto"), keep=tmp_path / "kept")
    assert worked_in == []
    assert os.listdir(tmp_path) == []


def test_the_log_of_one_that_stopped_itself_is_kept_where_temporary_files_are(
    worked_in: list[RunFolders], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(recipe: Recipe, folders: RunFolders, steps_factor: int) -> SplitResult:
        logging.getLogger("cluster").warning("a server died")
        raise RunStopped("no policy server came up")

    monkeypatch.setattr(evaluation, "_played", stops)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    with pytest.raises(RunStopped, match=rf"its log is {tmp_path}/waymark-eval-\w+\.log$"):
        evaluation.evaluate(recipe("run.resources.address=auto"), keep=tmp_path / "shared" / "kept")
    assert os.listdir(tmp_path / "shared") == []


def test_the_policy_is_laid_out_without_links_to_places_that_other_nodes_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = shutil.copytree(POLICY, tmp_path / "policy")
    settings = as_evaluated(build_recipe({}, []), policy=source, split="test").policy

    def other_disk(source: Path, target: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    lay_out_model(settings, tmp_path / "second_names", evaluation.for_all_nodes)
    monkeypatch.setattr(os, "link", other_disk)
    lay_out_model(settings, tmp_path / "copies", evaluation.for_all_nodes)
    read = {file.name: file.read_bytes() for file in source.iterdir() if file.is_file()}
    shutil.rmtree(source)
    for folder in (tmp_path / "second_names", tmp_path / "copies"):
        files = list(folder.iterdir())
        assert "model.safetensors" in {file.name for file in files}
        assert not any(file.is_symlink() for file in files)
        assert all(file.read_bytes() == read[file.name] for file in files)
