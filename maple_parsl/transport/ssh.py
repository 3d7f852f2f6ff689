"""A site over the user's own ssh connection: never a second login.

Many sites ask for two factors at each login. So only a connection that the user has opened is used
(``ControlMaster`` of OpenSSH): it is looked for before every call, and nothing else is tried.
"""

from __future__ import annotations

import os
import subprocess
from typing import Any

from maple_parsl.errors import TransportError
from maple_parsl.transport.base import DEADLINE, boot_command, piped

_CHECK_SECONDS = 10
_QUIET = ("-o", "BatchMode=yes", "-o", "ControlMaster=no", "-o", "ForwardX11=no", "-o", "ForwardAgent=no")


class Ssh:
    """A host as the user's ssh knows it.

    Args:
        host: name or alias. python: the interpreter there.
        config: another configuration file than the user's; MAPLE_SSH_CONFIG names one too.
    """

    def __init__(self, host: str, python: str = "python3", config: str | None = None) -> None:
        self._host, self._python = host, python
        chosen = config or os.environ.get("MAPLE_SSH_CONFIG")
        self._words = ("ssh", *(("-F", chosen) if chosen else ()), *_QUIET)

    def call(self, op: str, *, deadline: float = DEADLINE, **asked: Any) -> dict[str, Any]:
        """See :class:`~maple_parsl.transport.base.Transport`."""
        self.ready()
        # ProxyCommand=false: should the connection vanish this moment, no other is opened.
        words = (*self._words, "-o", "ProxyCommand=false", "--", self._host, boot_command(self._python))
        return piped(words, op, asked, deadline, self._host)

    def ready(self) -> None:
        """Pass when the user's connection is open."""
        try:
            done = subprocess.run(
                [*self._words, "-O", "check", "--", self._host],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_CHECK_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise TransportError("ssh is not on PATH; install OpenSSH's client", certain=True) from None
        except subprocess.TimeoutExpired:
            raise TransportError(f"the ssh connection to {self._host} hangs; log in once more", certain=True) from None
        if done.returncode:
            raise TransportError(
                f"no open ssh connection to {self._host}: log in once in another terminal (ssh {self._host}) and leave"
                " it open. ~/.ssh/config needs ControlMaster auto, ControlPath ~/.ssh/%C and ControlPersist for that"
                " host",
                certain=True,
            )
