"""What grew in a process that all pages share is blamed on the page that worked while it grew, and on no other."""

from __future__ import annotations

from environments.browser.blame import Blame, Process, busiest

BROWSER, GPU, CALM, FLOOD = 1, 2, 10, 11


def looked(browser_mb: int, calm_s: float, flood_s: float | None, gpu_mb: int = 70) -> list[Process]:
    pages = [Process(CALM, "renderer", 90, calm_s)]
    pages += [] if flood_s is None else [Process(FLOOD, "renderer", 90, flood_s)]
    return [Process(BROWSER, "browser", browser_mb, 5.0), Process(GPU, "GPU", gpu_mb, 1.0), *pages]


def test_the_page_that_worked_while_it_grew_is_blamed_and_not_the_one_that_worked_before() -> None:
    blame = Blame(300)
    assert blame.look(looked(100, 50.0, 0.1)) is None
    assert blame.look(looked(350, 50.1, 0.6)) is None
    found = blame.look(looked(450, 50.2, 1.1))
    assert found is not None
    assert found[0] == FLOOD
    assert found[1] == "Chromium's browser process grew by 350 MB, mostly while the page worked"


def test_a_page_that_came_meanwhile_is_blamed_with_all_its_work() -> None:
    blame = Blame(300)
    blame.look(looked(100, 50.0, None))
    blame.look(looked(100, 51.0, 0.1))
    found = blame.look(looked(500, 51.3, 0.9))
    assert found is not None
    assert found[0] == FLOOD


def test_the_gpus_process_is_watched_alike() -> None:
    blame = Blame(300)
    blame.look(looked(100, 0.0, 0.0))
    found = blame.look(looked(100, 0.1, 0.5, gpu_mb=400))
    assert found is not None
    assert found[0] == FLOOD


def test_memory_that_comes_back_late_is_blamed_on_nobody_and_the_next_growth_is() -> None:
    blame = Blame(300)
    blame.look(looked(100, 0.0, 0.0))
    assert blame.look(looked(500, 0.1, 1.0)) is not None
    for _ in range(100):
        assert blame.look(looked(500, 0.2, None)) is None
    assert blame.look(looked(120, 0.3, None)) is None
    found = blame.look(looked(440, 9.0, None))
    assert found is not None
    assert found[0] == CALM


def test_where_no_page_is_nobody_is_blamed() -> None:
    blame = Blame(300)
    blame.look([Process(BROWSER, "browser", 100, 0.0)])
    assert blame.look([Process(BROWSER, "browser", 900, 1.0)]) is None


def test_the_busiest_page_is_the_one_that_worked_most_between_two_looks() -> None:
    before, after = looked(100, 50.0, 1.0), looked(100, 50.4, 3.0)
    assert busiest(before, after, least_s=1.5) == FLOOD
    assert busiest(before, after, least_s=2.5) == 0
    assert busiest(before, looked(100, 52.0, None), least_s=1.5) == CALM
    assert busiest([], [], least_s=1.0) == 0
