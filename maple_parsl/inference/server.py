"""A model behind an OpenAI-compatible server (vLLM, a facility's gateway). Nothing it sends is trusted."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import InferenceError
from maple_parsl.inference.base import Answer, Message

if TYPE_CHECKING:
    from maple_parsl.settings import ModelSettings


class ServerModel:
    """Chat completions with ``response_format`` of type ``json_schema``; size and time of an answer are limited."""

    def __init__(self, settings: ModelSettings, key: str = "") -> None:
        self._settings, self._key = settings, key

    @property
    def model(self) -> str:
        return f"{self._settings.name}@{self._settings.url}"

    def answer(self, messages: Sequence[Message], schema: Mapping[str, Any]) -> Answer:
        settings = self._settings
        body = {
            "model": settings.name,
            "messages": [dict(message) for message in messages],
            "temperature": 0,
            "max_tokens": settings.max_answer,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)},
            },
        }
        return self._read(self._post(json.dumps(body).encode()))

    def _post(self, body: bytes) -> bytes:
        import httpx

        settings, deadline = self._settings, time.monotonic() + self._settings.timeout
        headers = {"content-type": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        try:
            with (
                httpx.Client(timeout=settings.timeout, follow_redirects=False, trust_env=False) as client,
                client.stream("POST", f"{settings.url}/chat/completions", content=body, headers=headers) as response,
            ):
                if response.status_code != 200:
                    raise InferenceError(f"{settings.url} answered with status {response.status_code}")
                read = b""
                for piece in response.iter_bytes(8192):
                    read += piece
                    if len(read) > settings.max_bytes:
                        raise InferenceError(f"{settings.url} sent more than {settings.max_bytes} bytes")
                    if time.monotonic() > deadline:
                        raise InferenceError(f"{settings.url} took longer than {settings.timeout:g} s")
                return read
        except httpx.TimeoutException:
            raise InferenceError(f"{settings.url} took longer than {settings.timeout:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise InferenceError(f"{settings.url} cannot be asked: {type(error).__name__}") from None

    def _read(self, raw: bytes) -> Answer:
        try:
            found = json.loads(raw)
            message = found["choices"][0]["message"]
            text = message["content"]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            raise InferenceError(f"{self._settings.url} answered something that is no chat completion") from None
        if not isinstance(text, str) or message.get("tool_calls"):
            raise InferenceError(f"{self._settings.url} answered with no text (a tool call, perhaps); none is made")
        usage = found.get("usage") or {}
        counts = [usage.get(name) if isinstance(usage, dict) else 0 for name in ("prompt_tokens", "completion_tokens")]
        read, written = (count if isinstance(count, int) else 0 for count in counts)
        return Answer(text, self.model, read, written)
