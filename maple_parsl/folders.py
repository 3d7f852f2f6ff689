"""Folders as people name them: ``~`` in front, or the one a shell stands in."""

from __future__ import annotations

import os
from pathlib import Path

from maple_parsl.errors import ConfigurationError


def expanded(text: str, what: str) -> Path:
    """A stated folder with its ``~`` filled in.

    Raises:
        ConfigurationError: the home it names is not known; a folder called ``~…`` is never meant.
    """
    filled = os.path.expanduser(text)
    if filled.startswith("~"):
        raise ConfigurationError(f"{what} is {text!r}, and that home folder is not known here; write the whole path")
    return Path(filled)


def current() -> Path:
    """The current folder.

    Raises:
        ConfigurationError: it was removed, or cannot be seen.
    """
    try:
        return Path.cwd()
    except OSError:
        raise ConfigurationError("the current folder is gone or cannot be read; cd to one that is there") from None
