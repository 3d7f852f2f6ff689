"""``maple endpoints login``: Globus asks for the login on this terminal."""

from __future__ import annotations

from maple_parsl.errors import RequestError, TransportError


def command() -> int:
    """Log in to Globus. The SDK keeps the tokens (~/.globus_compute, readable by you alone); Maple keeps none."""
    try:
        from globus_compute_sdk import Client
    except ImportError:
        raise TransportError("the Globus Compute SDK is not installed: pip install 'maple-parsl[globus]'") from None
    try:
        Client()
    except Exception as error:
        if type(error).__name__ == "CommandLineLoginFlowEOFError":
            raise RequestError("logging in needs a terminal to type a code into") from None
        raise TransportError(f"the login did not succeed: {error}") from None
    print("logged in")
    return 0
