"""An LLM judge in a process of its own, which answers as a file says: yes, nonsense, or never.

One line in, one line out. ``JudgeLine`` is the client: it asks over a socket and hands on what was said.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

from judges.interface import AnswerQuestion

ROOT = Path(__file__).resolve().parents[2]


class JudgeLine:
    """An ``AnswerJudge`` at a port of this machine; what the judge says is yes, no or handed on as it is."""

    name = "line"

    def __init__(self, port: int) -> None:
        self._port = port

    async def matches(self, question: AnswerQuestion) -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(f"{question.answer}\n".encode())
            said: Any = (await reader.readline()).decode().strip()
            return {"yes": True, "no": False}.get(said, said)  # type: ignore[no-any-return]
        finally:
            writer.close()

    async def same_reason(self, question: AnswerQuestion) -> bool:
        return await self.matches(question)


class JudgeProcess:
    """The judge; ``say`` rules what it answers, ``end`` and ``start`` take it down and bring it back."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self._rule = folder / "JUDGE"
        self.say("yes")
        self.port = port
        self.start()

    def say(self, text: str) -> None:
        """Answer ``text``; an empty one is no answer at all."""
        self._rule.write_text(text)

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), str(self._rule), str(self.port)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def end(self) -> None:
        self._process.kill()
        self._process.wait(30)
        if self._process.stdout is not None:
            self._process.stdout.close()


async def serve(rule: Path, port: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        said = rule.read_text()
        if not said:
            await asyncio.sleep(3600)
        writer.write(f"{said}\n".encode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
