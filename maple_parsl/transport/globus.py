"""A site through a Globus Compute endpoint.

The SDK's executor is used with what was learned of it: never in a ``with`` (its end would wait for a lost task
for ever), a new one after any error of the service (the old one refuses everything from then on), and a deadline
of our own for every call (a task lost with the endpoint's process is never reported).
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import warnings
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from maple_parsl import remote
from maple_parsl.errors import TransportError
from maple_parsl.transport.base import DEADLINE, opened, question, within
from maple_parsl.transport.globus_words import explained

_LARGEST = 7 << 20
"""Characters of a question; the service takes 10 MB as sent."""


class Globus:
    """An endpoint.

    Args:
        endpoint: its id. options: ``user_endpoint_config`` of its template; each value is a process of its own there.
    """

    def __init__(self, endpoint: str, options: dict[str, Any] | None = None) -> None:
        self.endpoint, self._options = endpoint, options
        self._lock = threading.Lock()
        self._executor: Any = None

    def call(self, op: str, *, deadline: float = DEADLINE, **asked: Any) -> dict[str, Any]:
        """See :class:`~maple_parsl.transport.base.Transport`."""
        text = question(op, asked)
        if len(text) > _LARGEST:
            raise TransportError(
                f"{len(text) >> 20} MiB are too much for one call through Globus Compute; have large files at the site,"
                " by path",
                certain=True,
            )
        return opened(self.run(remote.source(), remote.ENTRY, (text,), deadline), op)

    def run(self, source: str, entry: str, arguments: tuple[Any, ...], deadline: float) -> Any:
        """Call a function of a source text there; arguments and result are JSON.

        Raises:
            TransportError: see :meth:`call`.
        """
        end = time.monotonic() + deadline
        try:
            future = within(deadline, lambda: self.submit(source, entry, arguments))
            return future.result(max(0.0, end - time.monotonic()))
        except TimeoutError:
            raise TransportError(
                f"no answer from endpoint {self.endpoint} within {deadline:g} s; what was asked may have happened, or"
                " may happen later, ask again"
            ) from None
        except TransportError:
            raise
        except Exception as error:
            self.forget()
            raise explained(error, self.endpoint) from None

    def submit(self, source: str, entry: str, arguments: tuple[Any, ...]) -> Future[Any]:
        """The same without waiting."""
        with self._lock:
            if self._executor is None:
                self._executor = _executor(self.endpoint, self._options)
            executor = self._executor
        function = _function(executor.client, source, entry)
        made: Future[Any] = executor.submit_to_registered_function(function, args=arguments)
        return made

    def ready(self) -> None:
        """Pass when the service calls the endpoint online."""
        if not self.online():
            raise TransportError(
                f"endpoint {self.endpoint} is offline; start it there: globus-compute-endpoint start NAME --detach",
                certain=True,
            )

    def online(self, deadline: float = 20.0) -> bool:
        """Whether the service calls the endpoint online: its process at the site lives.

        Raises:
            TransportError: the service does not say.
        """
        try:
            said = within(deadline, lambda: client().get_endpoint_status(self.endpoint))
        except TimeoutError:
            raise TransportError(
                f"the Globus Compute service does not answer within {deadline:g} s", certain=True
            ) from None
        except Exception as error:
            raise explained(error, self.endpoint) from None
        return bool(said.get("status") == "online")

    def metadata(self, deadline: float = 20.0) -> dict[str, Any]:
        """What the endpoint registered: host, versions, template and schema."""
        try:
            return dict(within(deadline, lambda: client().get_endpoint_metadata(self.endpoint)))
        except TimeoutError:
            raise TransportError(
                f"the Globus Compute service does not answer within {deadline:g} s", certain=True
            ) from None
        except Exception as error:
            raise explained(error, self.endpoint) from None

    def forget(self) -> None:
        """Let the executor go; the next call makes another."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            _let_go(executor)


_client: list[Any] = []
_functions: dict[tuple[int, str], str] = {}
_making = threading.Lock()
_executors: list[Any] = []


def client() -> Any:
    """The SDK's client, made once; logging in is left to the person at ``maple endpoints login``."""
    with _making:
        if not _client:
            try:
                from globus_compute_sdk import Client
            except ImportError:
                raise TransportError(
                    "the Globus Compute SDK is not installed: pip install 'maple-parsl[globus]'", certain=True
                ) from None
            _check_login()
            _client.append(Client(do_version_check=False))
        return _client[0]


def _check_login() -> None:
    """A client without a login would ask for one on the terminal, from within a thread."""
    from globus_compute_sdk.sdk.auth.globus_app import get_globus_app

    if os.environ.get("GLOBUS_COMPUTE_CLIENT_ID") and os.environ.get("GLOBUS_COMPUTE_CLIENT_SECRET"):
        return
    if get_globus_app().login_required():
        raise TransportError("you are not logged in to Globus: maple endpoints login", certain=True)


def _executor(endpoint: str, options: dict[str, Any] | None) -> Any:
    made_client = client()
    from globus_compute_sdk import Executor
    from globus_compute_sdk.serialize import ComputeSerializer, JSONData, PureSourceTextInspect

    # The hosted service's documented rate is 20 requests in 10 s; the loopback of a stand has none.
    # Source text is sent, which any of these Pythons reads.
    warnings.filterwarnings("ignore", message=r"\s*Environment differences detected", category=UserWarning)
    window = 1 if os.environ.get("GLOBUS_SDK_ENVIRONMENT") == "local" else 4
    made = Executor(
        endpoint_id=endpoint,
        client=made_client,
        user_endpoint_config=options,
        api_burst_limit=8,
        api_burst_window_s=window,
        result_serializers=[JSONData()],
    )
    # JSON both ways: nothing of an answer is ever unpickled.
    made.serializer = ComputeSerializer(
        strategy_data=JSONData(), allowed_deserializer_types=[JSONData, PureSourceTextInspect]
    )
    _executors.append(made)
    return made


def _function(made_client: Any, source: str, entry: str) -> str:
    key = (id(made_client), source)
    with _making:
        if key not in _functions:
            _functions[key] = str(made_client.register_source_code(source, entry, description="maple"))
        return _functions[key]


def _let_go(executor: Any) -> None:
    with suppress(ValueError):
        _executors.remove(executor)
    with suppress(Exception):
        executor.shutdown(wait=False, cancel_futures=True)


@atexit.register
def _close() -> None:
    for executor in tuple(_executors):
        _let_go(executor)
