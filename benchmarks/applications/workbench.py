"""A server for pages around a library: a page, the library's own files, and what the page saves.

``python workbench.py PAGE PACKAGES STATE PORT``. Owns the state of one page: a JSON value, at first that of
``pages/PAGE.json``, then what was put at ``/state``. ``/saved`` shows it as text, a line for each value. What a page
asks of its server beside that is in ``booking.py``.
"""

from __future__ import annotations

import html
import json
import mimetypes
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent))
import booking

_PAGES = Path(__file__).resolve().parent / "pages"


def main() -> None:
    """Serve until the process is ended."""
    page, packages, state, port = sys.argv[1:]
    ThreadingHTTPServer(
        ("127.0.0.1", int(port)), _handler(page, Path(packages), Path(state) / "state.json")
    ).serve_forever()


def _handler(page: str, packages: Path, state: Path) -> type[BaseHTTPRequestHandler]:
    modules = (packages / "node_modules").resolve()

    def read() -> str:
        return (state if state.exists() else _PAGES / f"{page}.json").read_text(encoding="utf-8")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path.startswith("/lib/"):
                self._file(unquote(parts.path.removeprefix("/lib/")))
            elif parts.path == "/state":
                self._answer(read(), "application/json")
            elif parts.path == "/saved":
                lines = "\n".join(_lines(json.loads(read())))
                self._answer(f"<title>Saved</title><pre id=saved>{html.escape(lines)}</pre>")
            elif page == "booking":
                self._booking("GET")
            else:
                self._answer((_PAGES / f"{page}.html").read_text(encoding="utf-8"))

        def do_PUT(self) -> None:
            state.write_text(json.dumps(json.loads(self._body())), encoding="utf-8")
            self._answer("")

        def do_POST(self) -> None:
            self._booking("POST")

        def do_DELETE(self) -> None:
            self._booking("DELETE")

        def _booking(self, method: str) -> None:
            parts = urlsplit(self.path)
            told = parse_qs(self._body() if method == "POST" else parts.query, keep_blank_values=True)
            kept = json.loads(read())
            whole = self.headers.get("HX-Request") != "true"
            layout = (_PAGES / "booking.html").read_text(encoding="utf-8")
            found = booking.answer(method, parts.path, {name: values[-1] for name, values in told.items()}, kept)
            if method != "GET":
                state.write_text(json.dumps(kept), encoding="utf-8")
            self._answer(layout.replace("<!--content-->", found) if whole else found)

        def _body(self) -> str:
            return self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()

        def _file(self, name: str) -> None:
            path = (modules / name).resolve()
            if not path.is_file() or modules not in path.parents:
                self._answer("", status=404)
                return
            self._answer(path.read_bytes(), mimetypes.guess_type(name)[0] or "text/javascript")

        def _answer(self, content: str | bytes, kind: str = "text/html; charset=utf-8", status: int = 200) -> None:
            sent = content.encode() if isinstance(content, str) else content
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _lines(value: object, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [line for name, one in value.items() for line in _lines(one, f"{path}.{name}" if path else name)]
    if isinstance(value, list):
        return [line for index, one in enumerate(value) for line in _lines(one, f"{path}.{index}")]
    return [f"{path} = {value};"]


if __name__ == "__main__":
    main()
