"""The command ``waymark train`` as a user starts it: in a terminal of its own, in a folder of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cluster.run_folder.manifest import RunManifest
from records.episodes import Source
from replay.buffer import ReplayBuffer
from tests.e2e.processes import Process, left_after, started_with

ROOT = Path(__file__).resolve().parents[2]
MARK = "WAYMARK_E2E_COMMAND"
LIMIT_S = 600.0


@dataclass(frozen=True)
class Ended:
    """How a command ended, what it said, and the processes that it left."""

    code: int
    output: str
    errors: str
    left: list[Process]


@dataclass
class Run:
    """A recipe and its run folder, for which the same command can be started again."""

    folder: Path
    recipe: dict[str, Any]
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def out(self) -> Path:
        return self.folder / "run"

    @property
    def manifest(self) -> RunManifest:
        return RunManifest.read(self.out)

    @property
    def buffer(self) -> ReplayBuffer:
        return ReplayBuffer(self.out / "episodes")

    def start(self, *arguments: str, command: str = "train") -> subprocess.Popen[str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "recipe.yaml"
        path.write_text(yaml.safe_dump(self.recipe))
        place = ["--out", str(self.out)] if command == "train" else []
        words = [sys.executable, "-m", "cluster", command, str(path), *place, *arguments]
        environment = {**os.environ, MARK: self.mark, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        # A session of its own, as a terminal gives it: Ctrl-C reaches the whole group.
        return subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
            cwd=self.folder, start_new_session=True,
        )  # fmt: skip

    def end(self, process: subprocess.Popen[str]) -> Ended:
        try:
            output, errors = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate(timeout=10)
            errors += f"\n(killed after {LIMIT_S:g} s)"
        return Ended(process.returncode, output, errors, left_after(MARK, self.mark, seconds=10))

    def run(self, *arguments: str, command: str = "train") -> Ended:
        return self.end(self.start(*arguments, command=command))

    def run_until(self, moment: Callable[[], bool], act: Callable[[subprocess.Popen[str]], None]) -> Ended:
        """Start the command, act on it as soon as ``moment`` has come, and wait for its end."""
        process = self.start()
        ends = time.monotonic() + LIMIT_S
        while process.poll() is None and not moment() and time.monotonic() < ends:
            time.sleep(0.02)
        if process.poll() is None:
            act(process)
        return self.end(process)

    def stage_done(self, phase: int, stage: str) -> bool:
        return (self.out / "manifest.json").exists() and self.manifest.stage_done(phase, stage)

    def rollouts(self, phase: int) -> dict[str, Path]:
        """The finished episodes of a phase, and the shard of each."""
        buffer = self.buffer
        return {i: buffer.entry(i).shard for i in buffer.ids(sources=[Source.ROLLOUT], phases=[phase])}

    def process(self, title: str) -> Process:
        """The one process of this command whose title begins like this."""
        (found,) = [process for process in started_with(MARK, self.mark) if process.title.startswith(title)]
        return found


def interrupt(process: subprocess.Popen[str]) -> None:
    """Press Ctrl-C."""
    os.killpg(process.pid, signal.SIGINT)
