"""Resets: by the common reset server, by a command, and what is not there yet."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from environments.webarena.reset.command import CommandReset
from environments.webarena.reset.http import HttpReset
from environments.webarena.reset.kubernetes import KubernetesReset
from environments.webarena.reset.resetters import ResetUnavailable, make_resetter, resetters
from environments.webarena.settings import DeploymentSettings, ResetSettings
from records.failures import EpisodeFailed, FailureKind
from tests.e2e.processes import runs
from tests.environments.lab_site import serving
from tests.environments.webarena.fake_sites import FakeResetServer, FakeSite


async def failure_detail(reset: HttpReset | CommandReset) -> str:
    with pytest.raises(EpisodeFailed) as caught:
        await reset.reset("blue")
    assert (caught.value.failure.kind, caught.value.failure.code.name) == (FailureKind.INFRA, "reset_failed")
    return caught.value.failure.detail


@pytest.mark.parametrize("kind", ["new", "old"])
async def test_a_reset_server_is_asked_and_waited_for(kind: str) -> None:
    site = FakeSite("Shop", notes=["left behind"])
    server = FakeResetServer([site], kind)
    with serving(server.app()) as port:
        await HttpReset(f"http://127.0.0.1:{port}", timeout_s=10, poll_s=0.01, status_timeout_s=10).reset("blue")
    assert (site.notes, server.begun) == ([], 1)
    assert server.polls == (2 if kind == "new" else 0)


async def test_a_reset_that_ran_already_does_not_count_as_ours() -> None:
    server = FakeResetServer(running=3)
    with serving(server.app()) as port:
        await HttpReset(f"http://127.0.0.1:{port}/", timeout_s=10, poll_s=0.01, status_timeout_s=10).reset("blue")
    assert server.begun == 1


async def test_a_reset_that_fails_or_never_ends_is_a_failure_with_the_servers_words() -> None:
    with serving(FakeResetServer(kind="failing").app()) as port:
        detail = await failure_detail(
            HttpReset(f"http://127.0.0.1:{port}", timeout_s=10, poll_s=0.01, status_timeout_s=10)
        )
    assert "expected 200, found 500: Error executing reset script: exit 3" in detail
    with serving(FakeResetServer(kind="stuck").app()) as port:
        detail = await failure_detail(
            HttpReset(f"http://127.0.0.1:{port}", timeout_s=0.5, poll_s=0.01, status_timeout_s=10)
        )
    assert "not ready within 0.5 s" in detail
    with serving(FakeResetServer(kind="mute").app()) as port:
        hasty = HttpReset(f"http://127.0.0.1:{port}", timeout_s=60, poll_s=0.01, status_timeout_s=0.1)
        assert "/status: no answer within 0.1 s" in await failure_detail(hasty)
    assert "does not answer" in await failure_detail(
        HttpReset("http://127.0.0.1:1", timeout_s=5, poll_s=0.01, status_timeout_s=10)
    )


async def test_a_command_gets_its_arguments_as_they_are_and_the_deployments_name(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = "import os, sys; open(sys.argv[1], 'w').write(sys.argv[2] + os.environ['WAYMARK_DEPLOYMENT'])"
    await CommandReset((sys.executable, "-c", code, str(seen), "$(boom); "), timeout_s=20).reset("blue")
    assert seen.read_text() == "$(boom); blue"


async def test_a_command_that_fails_tells_its_last_words() -> None:
    code = "print('first' * 1000); print('no space left'); raise SystemExit(3)"
    detail = await failure_detail(CommandReset((sys.executable, "-c", code), timeout_s=20))
    assert detail.endswith("no space left")
    assert "ended with 3" in detail
    assert len(detail) < 600
    assert "cannot be started" in await failure_detail(CommandReset(("/no/such/program",), timeout_s=20))


async def test_a_command_past_its_deadline_is_ended_with_what_it_started(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    child = f"import time\nwhile True: open({str(alive)!r}, 'a').write('x'); time.sleep(0.02)"
    code = f"import subprocess, sys; print('began', flush=True); subprocess.run([sys.executable, '-c', {child!r}])"
    async with asyncio.timeout(60):
        detail = await failure_detail(CommandReset((sys.executable, "-c", code), timeout_s=4.0))
    assert "not done within 4 s; its last output: began" in detail
    await asyncio.sleep(0.2)
    size = alive.stat().st_size if alive.exists() else 0
    await asyncio.sleep(0.3)
    assert (alive.stat().st_size if alive.exists() else 0) == size


async def test_a_command_may_leave_servers_behind(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    code = (
        "import subprocess, sys; left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        "open(sys.argv[1], 'w').write(str(left.pid))"
    )
    await CommandReset((sys.executable, "-c", code, str(noted)), timeout_s=60).reset("blue")
    left = int(noted.read_text())
    assert runs(left)
    os.kill(left, signal.SIGKILL)


def test_only_deployments_with_a_reset_have_a_resetter() -> None:
    with_reset = DeploymentSettings("blue", reset=ResetSettings(kind="http", url="http://host:7565"))
    assert list(resetters((with_reset, DeploymentSettings("green")))) == ["blue"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "magic"}, "kind must be 'none' or 'http' or 'command' or 'kubernetes', found 'magic'"),
        ({"kind": "http"}, "expected an address"),
        ({"kind": "command"}, "expected a program"),
        ({"timeout_s": 0.0}, "a time above 0"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ResetSettings(**changes)  # type: ignore[arg-type]


class FakePods:
    """A cluster whose pods are ready after some questions; ``error`` is raised by the restart."""

    def __init__(self, questions: int = 2, error: Exception | None = None) -> None:
        self.questions, self.error, self.restarted = questions, error, list[str]()

    async def restart(self, deployment: str) -> None:
        if self.error is not None:
            raise self.error
        self.restarted.append(deployment)

    async def pending(self, deployment: str) -> list[str]:
        self.questions -= 1
        return [f"{deployment}-shop-0"] if self.questions >= 0 else []


async def test_pods_are_restarted_and_waited_for() -> None:
    pods = FakePods()
    await KubernetesReset(pods, timeout_s=30, poll_s=0.001).reset("blue")
    assert (pods.restarted, pods.questions) == (["blue"], -1)


@pytest.mark.parametrize(
    ("pods", "timeout_s", "complaint"),
    [
        (FakePods(questions=10**9), 0.05, "blue: pods not ready within 0.05 s: blue-shop-0"),
        (FakePods(error=OSError("forbidden")), 30, "blue: the cluster: OSError: forbidden"),
    ],
)
async def test_pods_that_are_not_reset_are_a_failure_of_the_infrastructure(
    pods: FakePods, timeout_s: float, complaint: str
) -> None:
    with pytest.raises(EpisodeFailed, match=complaint) as caught:
        await KubernetesReset(pods, timeout_s=timeout_s, poll_s=0.01).reset("blue")
    assert (caught.value.failure.kind, caught.value.failure.code.name) == (FailureKind.INFRA, "reset_failed")


def test_the_way_to_the_cluster_is_named_by_the_recipe() -> None:
    made = make_resetter(ResetSettings(kind="kubernetes", pods=f"{__name__}:FakePods"))
    assert isinstance(made, KubernetesReset)
    with pytest.raises(ResetUnavailable, match="reset.pods: .*'x'"):
        make_resetter(ResetSettings(kind="kubernetes", pods="x:y"))


async def test_the_program_that_resets_does_not_know_the_accounts_so_its_last_words_cannot_tell_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITLAB_PASSWORD", "hunter2")
    program = "import os, sys; print(os.environ.get('GITLAB_PASSWORD'), os.environ['WAYMARK_DEPLOYMENT']); sys.exit(3)"
    with pytest.raises(EpisodeFailed, match="None blue"):
        await CommandReset((sys.executable, "-c", program), 60).reset("blue")
