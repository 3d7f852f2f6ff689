"""Errors of the Globus Compute service and endpoint in plain words: what was wrong, and what to do."""

from __future__ import annotations

from maple_parsl.errors import TransportError

# HTTP status -> what it means, and whether nothing can have come of the call.
_STATUS = {
    401: ("the service does not know you: maple endpoints login", True),
    403: ("the service does not let you use it: ask its owner, or log in with the right identity", True),
    404: ("the service does not know it: correct globus_endpoint in your file of the site", True),
    413: ("what was sent is larger than the service takes: have large files at the site, by path", True),
    422: ("its configuration refused the call, or it could not start a process for you", True),
    429: ("too many requests: wait a minute", True),
}
_TEXTS = (
    ("WorkerLost", "a worker there died during the call"),
    ("MISSING", "its worker could not start: worker_init or a block failed there"),
    ("BadStateException", "its workers are gone: a block ended or could not start there"),
    ("MaxResultSizeExceeded", "the answer was larger than Globus Compute carries"),
    ("is shutdown", "the connection to it was lost"),
    ("SDK thread quit", "the connection to the service was lost"),
)


def explained(error: BaseException, endpoint: str) -> TransportError:
    """The error to raise for one of the SDK's."""
    if isinstance(error, TransportError):
        return error
    status = getattr(error, "http_status", None)
    raw = getattr(error, "raw_json", None)
    reason = raw.get("reason") or raw.get("message") if isinstance(raw, dict) else None
    said = " ".join(str(reason or getattr(error, "message", None) or error).split())
    name = f"endpoint {endpoint}"
    if isinstance(status, int):
        what, certain = _STATUS.get(status, ("the service is in trouble: ask again later", False))
        return TransportError(f"{name}: {what} ({status}: {said[:400]})", certain=certain)
    for mark, what in _TEXTS:
        if mark in said or mark in type(error).__name__:
            return TransportError(f"{name}: {what} ({said[-400:]})")
    if type(error).__name__ == "CommandLineLoginFlowEOFError":
        return TransportError("you are not logged in to Globus: maple endpoints login", certain=True)
    return TransportError(f"{name}: {type(error).__name__}: {said[-400:]}")
