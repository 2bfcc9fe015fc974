"""An HTTP server on loopback that speaks OpenAI's and Gemini's protocols, well or badly, as a script says.

It listens in a thread of its own, so that processes of a run can ask it too.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

SAME = json.dumps({"why": "both say so", "same": True})
INPUT_TOKENS, OUTPUT_TOKENS = 1000, 100


@dataclass(slots=True)
class Asked:
    """One request: where to, with which headers, what it said."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """All texts of the request, one after the other."""
        return "\n".join(_texts(self.body))


@dataclass(slots=True)
class ModelServer:
    """What the server does: ``script`` for the next requests, one entry each, then ``say`` to every request.

    An entry, and what ``say`` returns, is a text (the model's own words), a ``Status`` with headers and a body, or one
    of ``STALL`` and ``CUT``.
    """

    say: Callable[[Asked], object] = lambda asked: SAME
    script: list[object] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    delay_s: float = 0.0

    @property
    def url(self) -> str:
        """The server's address, without a path."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True, slots=True)
class Status:
    """An answer with a status of its own."""

    code: int
    headers: tuple[tuple[str, str], ...] = ()
    body: str | bytes = '{"error": {"message": "not now", "status": "UNAVAILABLE"}}'


STALL, CUT = "<stall>", "<cut>"


@contextmanager
def model_server(say: Callable[[Asked], object] = lambda asked: SAME) -> Iterator[ModelServer]:
    """Run a server until the end of the block."""
    server, ready, loop = ModelServer(say), threading.Event(), asyncio.new_event_loop()
    stopped = asyncio.Event()

    async def serve() -> None:
        listening = await asyncio.start_server(lambda r, w: _connection(server, r, w), "127.0.0.1", 0)
        server.port = listening.sockets[0].getsockname()[1]
        ready.set()
        await stopped.wait()
        listening.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # a closed connection's socket goes with the loop's next turn

    thread = threading.Thread(target=loop.run_until_complete, args=[serve()], daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(30)
        loop.close()


async def _connection(server: ModelServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while asked := await _request(reader):
            server.asked.append(asked)
            if server.delay_s:
                await asyncio.sleep(server.delay_s)
            act = server.script.pop(0) if server.script else server.say(asked)
            if act == STALL:
                await asyncio.sleep(3600)
            if isinstance(act, Status):
                _send(writer, act.code, act.body, act.headers)
            else:
                said = SAME if act == CUT else str(act)
                gemini = "generateContent" in asked.path
                body = json.dumps(gemini_reply(said) if gemini else chat_completion(said))
                if act == CUT:
                    _head(writer, 200, len(body))
                    writer.write(body[: len(body) // 2].encode())
                    await writer.drain()
                    break
                _send(writer, 200, body)
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def _request(reader: asyncio.StreamReader) -> Asked | None:
    line = (await reader.readline()).decode()
    if not line:
        return None
    headers: dict[str, str] = {}
    while (header := (await reader.readline()).decode().strip()) != "":
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(line.split(" ")[1], headers, json.loads(body) if body else {})


def _head(writer: asyncio.StreamWriter, code: int, length: int, headers: tuple[tuple[str, str], ...] = ()) -> None:
    lines = [f"HTTP/1.1 {code} status", "content-type: application/json", f"content-length: {length}"]
    writer.write("\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers), "", ""]).encode())


def _send(
    writer: asyncio.StreamWriter, code: int, body: str | bytes, headers: tuple[tuple[str, str], ...] = ()
) -> None:
    raw = body.encode() if isinstance(body, str) else body
    _head(writer, code, len(raw), headers)
    writer.write(raw)


def chat_completion(said: str) -> dict[str, Any]:
    """Return a reply as OpenAI's protocol has it."""
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 1,
        "model": "served",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}],
        "usage": {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def gemini_reply(said: str) -> dict[str, Any]:
    """Return a reply as Gemini's protocol has it."""
    return {
        "candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [{"text": said}]}}],
        "usageMetadata": {
            "promptTokenCount": INPUT_TOKENS,
            "candidatesTokenCount": OUTPUT_TOKENS - 40,
            "thoughtsTokenCount": 40,
        },
    }


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(child)
