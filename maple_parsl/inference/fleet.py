"""A model on whichever of the user's Globus Compute endpoints answers; questions of many threads travel together."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import ConfigurationError, InferenceError, TransportError
from maple_parsl.fleet import Fleet, members
from maple_parsl.inference.base import Answer, Message

if TYPE_CHECKING:
    from maple_parsl.settings import ModelSettings

GATHER_SECONDS = 0.02
"""How long a question waits for others of the same schema: little beside the half second of a round trip."""
_Waiting = tuple[list[Message], "Future[Answer]"]


class FleetModel:
    """The endpoints of one site, or of any, that the user's site files name for inference.

    Args:
        settings: ``name`` is a site or ``any``. fleet: made of the user's files when absent.

    Raises:
        ConfigurationError: no file names an endpoint and a model.
    """

    def __init__(self, settings: ModelSettings, fleet: Fleet | None = None) -> None:
        self._settings = settings
        self._fleet = fleet or Fleet(members(settings.name), most=settings.max_answer)
        if not self._fleet.members:
            raise ConfigurationError(
                f"agent model: no endpoint for globus:{settings.name}; name inference_endpoint and inference_model"
                " under [remote] in your file of a site"
            )
        self._lock = threading.Lock()
        self._gathered: dict[str, list[_Waiting]] = {}

    @property
    def model(self) -> str:
        return f"globus:{self._settings.name}"

    def answer(self, messages: Sequence[Message], schema: Mapping[str, Any]) -> Answer:
        """See :class:`~maple_parsl.inference.base.Backend`; the answer says who was asked."""
        key, future = json.dumps(schema, sort_keys=True), Future[Answer]()
        with self._lock:
            first = key not in self._gathered
            self._gathered.setdefault(key, []).append((list(messages), future))
        if first:
            threading.Event().wait(GATHER_SECONDS)
            with self._lock:
                asked = self._gathered.pop(key)
            self._ask(asked, schema)
        return future.result()

    def _ask(self, asked: list[_Waiting], schema: Mapping[str, Any]) -> None:
        try:
            found = self._fleet.answer([messages for messages, _ in asked], schema, self._settings.timeout)
        except TransportError as error:
            for _, future in asked:
                future.set_exception(InferenceError(str(error)))
            return
        except BaseException as error:  # the others must not wait for ever
            for _, future in asked:
                future.set_exception(error)
            raise
        route = tuple(f"{step.member}: {step.what} ({step.seconds:.1f} s)" for step in found.trace)
        for (_, future), text in zip(asked, found.texts, strict=True):
            future.set_result(Answer(text, f"{found.model}@{found.member}", route=route))
