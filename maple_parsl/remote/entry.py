"""The one function that is called at a site."""

from __future__ import annotations

import json
import sys

from maple_parsl.remote.folders import Refused
from maple_parsl.remote.operations import OPERATIONS


def entry(text: str) -> str:
    """Do one operation: ``{"op": name, ...}`` in; ``{"ok": true, "value": ...}`` or ``{"ok": false, "why": ...}`` out."""
    try:
        asked = json.loads(text)
        if sys.version_info < (3, 9):
            raise Refused("the site's Python is %s; 3.9 or newer is needed" % sys.version.split()[0])
        answer = {"ok": True, "value": OPERATIONS[asked["op"]](asked)}
    except Refused as error:
        answer = {"ok": False, "why": str(error)}
    except (KeyError, TypeError, ValueError) as error:
        answer = {"ok": False, "why": "what was asked cannot be read: %r" % error}
    except OSError as error:
        answer = {"ok": False, "why": "%s: %s" % (error.filename or "the site", error.strerror)}
    return json.dumps(answer)
