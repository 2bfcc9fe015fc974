"""A run folder after accidents of the disk and of its owner: full, torn, read-only, moved, taken twice.

Real files, real processes and, where a disk must be small, a real small disk; the phase loop runs over a system
without processes (``tests.cluster.fake_run``).
"""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.audit.audit import audit
from cluster.errors import RunInUse
from cluster.run_folder.lock import RunLock
from cluster.run_folder.stage_results import RolloutsPlayed
from records.episodes import Source
from replay.buffer import ReplayBuffer
from replay.shards import write_shard
from tests.cluster.fake_run import Killed, Run, at, before

pytestmark = pytest.mark.faults
ROOT = Path(__file__).resolve().parents[2]
SMALL = "run: {name: small, phases: 1, dashboard: false, environment: browserless}\nmonitors: {metrics_log: {}}\n"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode(errors='replace').strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True, timeout=20)


CHILD = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
LIMIT_S = 300.0


def waymark(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cluster", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=CHILD, cwd=folder)


def cut_short(out: Path, moment: int) -> Run:
    run = Run(out)
    with pytest.raises(Killed):
        run.start(at(moment))
    return run


def shards(run: Run) -> list[Path]:
    """The shards of phase 1's rollouts."""
    buffer = ReplayBuffer(run.out / "episodes")
    return sorted({buffer.entry(i).shard for i in buffer.ids(sources=[Source.ROLLOUT], phases=[1])})


def test_an_episode_in_a_torn_shard_is_played_again_and_the_file_is_set_aside(tmp_path: Path) -> None:
    run = cut_short(tmp_path, moment=28)
    torn = shards(run)[0]
    content = torn.read_bytes()
    torn.write_bytes(content[: len(content) // 2])
    run.start()
    assert torn.read_bytes() == content, "the same episode, played again"
    assert torn.with_name(torn.name + ".unusable").stat().st_size == len(content) // 2
    assert audit(run.out).findings == []


def test_a_shard_that_comes_late_never_takes_the_place_of_what_was_recorded(tmp_path: Path) -> None:
    """A worker that was taken for dead writes its record of an episode that another one has played meanwhile."""
    run = Run(tmp_path / "run")
    with pytest.raises(Killed):
        run.start(before(("update_critics", 1)))
    buffer = ReplayBuffer(run.out / "episodes")
    episode = buffer.trajectory(run.manifest.result(1, RolloutsPlayed).episodes[0])
    recorded = buffer.entry(episode.episode_id).shard.name
    other = replace(episode, outcome=1.0 - (episode.outcome or 0.0))
    written = [write_shard(tmp_path / "elsewhere", [replace(other, worker=str(n))]).path for n in range(50)]
    late = min(written, key=lambda path: path.name)
    assert late.name < recorded, "by its name it would count"
    shutil.copy(late, run.out / "episodes")
    run.start()
    (finding,) = audit(run.out).findings
    assert finding.subject == f"episode {episode.episode_id}"
    assert finding.found.startswith("is stored 2 times, but was dispatched 1 times")
    assert recorded in finding.found


@pytest.mark.parametrize("moment", [8, 30, 50])
def test_a_run_goes_on_in_another_place(tmp_path: Path, moment: int) -> None:
    undisturbed = Run(tmp_path / "undisturbed")
    undisturbed.start()
    run = cut_short(tmp_path / "here", moment)
    shutil.move(run.out, tmp_path / "there")
    moved = Run(tmp_path / "there")
    moved.start()
    assert not run.out.exists()
    assert [moved.manifest.entry(*stage).result for stage in moved.manifest.stages()] == [
        undisturbed.manifest.entry(*stage).result for stage in undisturbed.manifest.stages()
    ]
    assert audit(moved.out).findings == []


WRITERS = {
    "shard": """
from tests.cluster.made_episodes import spec, trajectory
from replay.shards import write_shard
def write(folder): write_shard(folder, [trajectory(spec(i), 1.0) for i in range(400)])
""",
    "stage": """
from cluster.run_folder.stage_files import StageEntry, write_stage
from cluster.run_folder.stage_results import TasksChosen
ORIGINS = {'x' * 100 + str(number): number for number in range(5000)}
def write(folder): write_stage(folder, 0, StageEntry(1, TasksChosen(tasks=(), origins=ORIGINS)))
""",
    "file": """
from cluster.run_folder.durable import write_atomic

def write(folder): write_atomic(folder / 'summary.json', 'x' * 500_000)
""",
    "checkpoint": """
import torch
from learner.checkpoints import write_checkpoint
def write(folder): write_checkpoint(folder / 'phase-001', {'actor': torch.nn.Linear(400, 300)}, {}, {'phases': 1})
""",
    "weights": """
import torch
from policy.weights import write_weights
def write(folder): write_weights({'w': torch.zeros(300, 400)}, folder / 'actor-000001.safetensors', 1)
""",
}
LIMITED = """
import resource, sys
from pathlib import Path
{writer}
folder = Path(sys.argv[1])
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, unlimited[1]))
try:
    write(folder)
except Exception as error:
    print(type(error).__name__, error)
left = sorted(p.relative_to(folder).as_posix() for p in folder.rglob('*') if p.is_file())
assert not left, left
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
write(folder)
assert any(p.is_file() for p in folder.rglob('*'))
"""


@pytest.mark.parametrize("what", WRITERS)
def test_a_write_that_the_disk_refuses_leaves_nothing_and_can_be_done_again(tmp_path: Path, what: str) -> None:
    """No file may grow beyond 200 kB, as on a disk that fills up in the middle of a write."""
    command = [sys.executable, "-c", LIMITED.format(writer=WRITERS[what]), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=CHILD)
    assert done.returncode == 0, done.stderr
    assert "File too large" in done.stdout


def test_a_full_disk_stops_the_command_with_a_message(small_disk: Path, recipe: Path) -> None:
    with pytest.raises(OSError, match="No space"):
        (small_disk / "filler").write_bytes(b"x" * 2**20)
    ended = waymark("train", str(recipe), "--out", str(small_disk / "run"), folder=recipe.parent)
    assert ended.returncode == 4, ended.stderr
    assert "No space left on device" in ended.stderr
    assert "start the same command again" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_read_only_folder_is_refused_before_anything_starts_and_can_still_be_audited(
    small_disk: Path, recipe: Path, tmp_path: Path
) -> None:
    whole = cut_short(tmp_path / "whole", moment=3)
    shutil.copytree(whole.out, small_disk / "run")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True, timeout=20)
    ended = waymark("train", str(recipe), "--out", str(small_disk / "run"), folder=recipe.parent)
    assert ended.returncode == 3, ended.stderr
    assert "Read-only file system" in ended.stderr
    assert "choose another --out" in ended.stderr
    assert waymark("audit", str(small_disk / "run"), folder=recipe.parent).returncode == 0


def test_a_second_controller_is_refused_by_the_first_ones_process(tmp_path: Path, recipe: Path) -> None:
    with RunLock(tmp_path / "run"):
        ended = waymark("train", str(recipe), "--out", str(tmp_path / "run"), folder=tmp_path)
    assert ended.returncode == 4, ended.stderr
    assert f"is in use by another run (process {os.getpid()}" in ended.stderr
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_a_learner_waits_for_the_one_of_a_killed_driver_to_end(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from cluster.run_folder.lock import RunLock;"
        "lock = RunLock(Path(sys.argv[1]), name='learner.lock'); lock.__enter__();"
        "print('held', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=CHILD) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with pytest.raises(RunInUse, match=rf"process {first.pid} has learner\.lock"):
            RunLock(tmp_path, name="learner.lock", wait_s=0.2).__enter__()
        first.send_signal(signal.SIGKILL)
        with RunLock(tmp_path, name="learner.lock", wait_s=60.0):
            assert first.wait(timeout=20) == -signal.SIGKILL


WALL_CLOCK = {
    "cluster/node_watch.py": "Ray says in wall time when a draining node goes",
    "cluster/run_folder/metrics_log.py": "when a line was written",
    "cluster/monitors/tensorboard.py": "when a number was told, which TensorBoard shows",
    "cluster/run_folder/manifest.py": "when a stage was complete",
    "cluster/run_folder/starts.py": "when a start was",
    "cluster/studies/registration.py": "when predictions were registered",
    "cluster/run_folder/stored_run.py": "how old a file's time of change is, which is of the same clock",
    "src/environments/webarena/login/sessions.py": "sites say in wall time when a cookie expires",
    "src/environments/webarena/reset/in_cluster.py": "when a pod was reset, which its annotation shows",
    "src/judges/llm/bodies.py": "Retry-After may be a date",
    "src/records/stores/node_bound.py": "files say in wall time when they were used",
}


def test_no_wait_and_no_deadline_reads_a_clock_that_can_jump() -> None:
    found = set()
    for path in sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "cluster").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                name = f"{node.value.id}.{node.attr}"
                if name in {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "date.today"}:
                    found.add(path.relative_to(ROOT).as_posix())
    assert found == set(WALL_CLOCK)
