"""Finding a browser: the order of the search, and what is said when there is none."""

from pathlib import Path

import pytest

from environments.browser import chromium
from environments.browser.chromium import BrowserMissing


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any browser: an empty PATH and an empty Playwright folder."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "playwright"))
    return tmp_path


def test_the_order_of_the_search(machine: Path) -> None:
    chromium_ = program(machine / "bin" / "chromium")
    assert chromium.find() == chromium_
    shell = program(machine / "bin" / "chromium-headless-shell")
    assert chromium.find() == shell
    own = program(machine / "playwright" / "chromium_headless_shell-1200" / "chrome-linux" / "headless_shell")
    assert chromium.find() == own
    explicit = program(machine / "mine")
    assert chromium.find(str(explicit)) == explicit


def test_an_explicit_browser_is_never_replaced_by_another(machine: Path) -> None:
    program(machine / "bin" / "chromium")
    with pytest.raises(BrowserMissing, match="browser.executable is '/no/such'"):
        chromium.find("/no/such")
    with pytest.raises(BrowserMissing, match="browser.executable"):
        chromium.ensure("/no/such")


def test_nothing_found_says_what_to_do_in_one_sentence(machine: Path) -> None:
    with pytest.raises(BrowserMissing) as caught:
        chromium.find()
    text = str(caught.value)
    assert "playwright install" in text
    assert "apt-get install" in text
    assert "\n" not in text


def test_ensure_installs_nothing_where_there_is_one(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = program(machine / "bin" / "chromium")
    monkeypatch.setattr(chromium, "_run", lambda *a: pytest.fail("nothing had to be installed"))
    assert chromium.ensure() == there


def test_ensure_tries_playwright_then_apt(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(machine / "bin" / "apt-get")
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 0)
    tried: list[list[str]] = []

    def run(command: list[str], timeout_s: float) -> None:
        tried.append(command)
        assert timeout_s == 7.0
        if command[-1] == "chromium-headless-shell" and command[0] == "apt-get":
            program(machine / "bin" / "chromium-headless-shell")

    monkeypatch.setattr(chromium, "_run", run)
    assert chromium.ensure(timeout_s=7.0).name == "chromium-headless-shell"
    assert [command[-2:] for command in tried] == [
        ["install", "chromium-headless-shell"],
        ["--no-install-recommends", "chromium-headless-shell"],
    ]


def test_a_browser_that_lacks_libraries_is_told_of_at_once(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = "error while loading shared libraries: libnss3.so: cannot open shared object file"
    there = program(machine / "bin" / "chromium")
    there.write_text(f"#!/bin/sh\necho '{lacking}' >&2\nexit 127\n")
    tried: list[list[str]] = []
    monkeypatch.setattr(chromium, "_run", lambda command, timeout_s: tried.append(command))
    with pytest.raises(BrowserMissing, match=r"does not start \(.*libnss3.*playwright install-deps chromium"):
        chromium.ensure()
    assert len(tried) == 1, "an installation that brings the libraries is tried first"
    there.write_text("#!/bin/sh\n")
    assert chromium.ensure() == there


def test_an_attempt_that_hangs_or_fails_is_given_up(machine: Path, caplog: pytest.LogCaptureFixture) -> None:
    chromium._run(["/bin/sh", "-c", "exec /bin/sleep 60"], 0.2)
    chromium._run(["/bin/sh", "-c", "echo no network >&2; exit 3"], 5.0)
    chromium._run(["/no/such/program"], 5.0)
    assert [r.levelname for r in caplog.records].count("WARNING") == 3
    assert "no network" in caplog.text


def test_flags_disable_names_outside_and_mark_the_process() -> None:
    flags = chromium.launch_flags("abc")
    assert any(f.startswith("--host-resolver-rules=MAP * ~NOTFOUND") for f in flags)
    assert "--waymark-browser=abc" in flags
    assert "--disable-threaded-compositing" not in flags
    assert not any(flag.startswith("--js-flags") for flag in flags)
    assert "--js-flags=--max-old-space-size=700" in chromium.launch_flags("abc", script_memory_mb=700)
    assert "--disable-threaded-compositing" in chromium.launch_flags("abc", paint=False)
