"""What is sent with a job, and how its command goes on with a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import submit
from cluster.errors import RecipeError
from cluster.run_folder.resume import Resume
from cluster.submit import Sent

MONITOR = """
from dataclasses import dataclass
from cluster.monitors.monitor import MonitorKind

@dataclass(frozen=True)
class Settings:
    __pydantic_config__ = {"extra": "forbid"}

MINE = MonitorKind(settings=Settings, start=lambda out, settings: None)
"""


class Jobs:
    """Takes a job as a cluster's dashboard does, and notes what its folder holds."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.files: set[str] = set()
        self.path = ""

    def submit_job(self, entrypoint: str, submission_id: str, runtime_env: dict[str, Any]) -> None:
        folder = Path(runtime_env["working_dir"])
        self.words = shlex.split(entrypoint)
        self.files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        self.path = runtime_env["env_vars"]["PYTHONPATH"]


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    jobs = Jobs()
    monkeypatch.setattr(submit, "_client", lambda address: jobs)
    return jobs


def send(folder: Path, sent: Sent, **more: Any) -> None:
    recipe = folder / "some.yaml"
    if not recipe.exists():
        recipe.write_text("run: {name: some}\n")
    overrides = more.pop("overrides", [])
    submit.submit(recipe, "http://127.0.0.1:1", "/shared/some", overrides, sent=sent, follow=False, **more)


def test_a_job_goes_on_as_its_user_says(tmp_path: Path, jobs: Jobs) -> None:
    send(tmp_path, Sent(), resume=Resume.OTHER_CODE, overrides=["warm_start.clone=always"])
    assert jobs.words[:7] == ["python", "-m", "cluster", "train", "recipe.yaml", "--out", "/shared/some"]
    assert jobs.words[7:] == ["--resume", "other-code", "--set", "warm_start.clone=always"]
    assert {"recipe.yaml", "src/learner/trainer.py", "cluster/train.py"} <= jobs.files
    assert not [name for name in jobs.files if "__pycache__" in name]
    assert jobs.path == "src:."


def test_modules_of_ones_own_are_sent_where_they_are_named(tmp_path: Path, jobs: Jobs) -> None:
    (tmp_path / "mine.py").write_text("")
    (tmp_path / "more" / "deep").mkdir(parents=True)
    (tmp_path / "more" / "deep" / "part.py").write_text("")
    send(tmp_path, Sent([tmp_path / "mine.py", tmp_path / "more"], installed=True))
    assert jobs.files == {"recipe.yaml", "mine.py", "more/deep/part.py"}
    assert jobs.path == "."


@pytest.mark.parametrize("name", ["recipe.yaml", "src", "cluster", "absent.py"])
def test_what_cannot_be_sent_is_refused(name: str, tmp_path: Path, jobs: Jobs) -> None:
    if name != "absent.py":
        (tmp_path / name).mkdir()
    with pytest.raises(RecipeError, match=r"--with .*(rename it|no such file or folder)"):
        send(tmp_path, Sent([tmp_path / name]))
    assert jobs.words == []


def test_a_module_that_the_cluster_would_lack_is_named(
    tmp_path: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_monitor.py").write_text(MONITOR)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "some.yaml").write_text(yaml.safe_dump({"monitors": {"own_monitor:MINE": {}}}))
    with pytest.raises(RecipeError, match=r"own_monitor:MINE: its module is .*; add --with .*own_monitor.py"):
        send(tmp_path, Sent())
    send(tmp_path, Sent([tmp_path / "own_monitor.py"]))
    assert "own_monitor.py" in jobs.files
