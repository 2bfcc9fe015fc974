"""Screenshots on disk: complete under their names, whoever else writes them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rollout_workers.screenshots import ScreenshotFolder

SIZE = 1 << 16


def test_two_attempts_may_store_the_same_step_at_once(tmp_path: Path) -> None:
    folder = ScreenshotFolder(tmp_path / "screenshots")
    pictures = [bytes([attempt]) * SIZE for attempt in range(8)]
    with ThreadPoolExecutor(len(pictures)) as attempts:
        names = list(attempts.map(lambda png: folder.save("train/e 1", 3, png), pictures * 10))
    assert set(names) == {"train_e_1/03.png"}
    assert (tmp_path / "screenshots" / names[0]).read_bytes() in pictures
    assert [path.name for path in (tmp_path / "screenshots").rglob("*") if path.is_file()] == ["03.png"]
