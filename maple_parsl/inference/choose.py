"""The backend that settings name; loaded once per process."""

from __future__ import annotations

import os
from functools import lru_cache

from maple_parsl.errors import ConfigurationError
from maple_parsl.inference.base import Backend
from maple_parsl.settings import ModelSettings


def backend(settings: ModelSettings) -> Backend | None:
    """The backend; None where no model is wanted.

    Raises:
        ConfigurationError: the model or its server is not named.
        InferenceError: the model cannot be loaded.
    """
    if settings.backend == "none":
        return None
    if not settings.name:
        raise ConfigurationError(f"agent model: backend {settings.backend} needs name, the model")
    return _made(settings, os.environ.get(settings.key_env, ""))


@lru_cache(maxsize=2)
def _made(settings: ModelSettings, key: str) -> Backend:
    if settings.backend == "transformers":
        from maple_parsl.inference.local import LocalModel

        return LocalModel(settings)
    if settings.backend == "globus":
        from maple_parsl.inference.fleet import FleetModel

        return FleetModel(settings)
    if not settings.url:
        raise ConfigurationError("agent model: backend openai needs url, ending in /v1")
    from maple_parsl.inference.server import ServerModel

    return ServerModel(settings, key)
