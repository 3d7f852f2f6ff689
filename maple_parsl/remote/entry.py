"""The one function that is called at a site."""

from __future__ import annotations

import json

from maple_parsl.remote.folders import Refused
from maple_parsl.remote.operations import OPERATIONS


def entry(text: str) -> str:
    """Do one operation: ``{"op": name, ...}`` in; ``{"ok": true, "value": ...}`` or ``{"ok": false, "why": ...}``."""
    try:
        asked = json.loads(text)
        answer = {"ok": True, "value": OPERATIONS[asked["op"]](asked)}
    except Refused as error:
        answer = {"ok": False, "why": str(error)}
    except (KeyError, TypeError, ValueError) as error:
        answer = {"ok": False, "why": f"what was asked cannot be read: {error!r}"}
    except OSError as error:
        answer = {"ok": False, "why": "{}: {}".format(error.filename or "the site", error.strerror)}
    return json.dumps(answer)
