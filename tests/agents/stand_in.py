"""A stand-in for an OpenAI-compatible server, on this machine: it says what the test tells it to, well or badly."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[[dict[str, Any]], bytes]


def completion(content: Any, **message: Any) -> bytes:
    said = {"role": "assistant", "content": content, **message}
    return json.dumps({"choices": [{"message": said}], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}).encode()


def says(**values: Any) -> Reply:
    """Answers with JSON that has the asked fields: those given, and null."""

    def reply(body: dict[str, Any]) -> bytes:
        schema = body["response_format"]["json_schema"]["schema"]
        return completion(json.dumps({name: values.get(name) for name in schema["required"]}))

    return reply


@contextmanager
def serving(reply: Reply, status: int = 200, wait: float = 0.0) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The server's address, ending in ``/v1``, and the requests it got."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(body)
            time.sleep(wait)
            answer = reply(body)
            self.send_response(status)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            try:
                self.wfile.write(answer)
            except OSError:
                self.close_connection = True  # the client had enough

        def log_message(self, *words: object) -> None:
            """Tests print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
