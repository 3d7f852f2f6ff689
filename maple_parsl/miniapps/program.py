"""From the command line to the exit code."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from .errors import EXIT_USAGE, RankError, UsageError
from .options import parse
from .signals import SignalFlags
from .world import Place, join, launch_name, leave


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one rank and returns its exit code."""
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except UsageError as error:
        _complain(error)
        return EXIT_USAGE
    finally:
        if "torch" in sys.modules:
            leave()


def _run(argv: Sequence[str]) -> int:
    place = Place.from_environment(os.environ)
    options = parse(argv, place.world_size)
    if options.paradigm == "zero":
        from .paradigms.zero import require_deepspeed

        require_deepspeed()
    flags = SignalFlags()
    flags.install()

    from .loop import Interference, train

    interference = Interference.from_environment(os.environ)
    world = join(place, os.environ)
    return train(options, world, flags, interference, resume=os.environ.get("MAPLE_RESUME") == "1")


def _complain(error: UsageError) -> None:
    """Prints the error as one line.

    All ranks make the same mistake together, so one rank of each host speaks.  The others wait a moment:
    the first exit makes a launcher end the rest, and that must not be the speaker.
    """
    if isinstance(error, RankError) or os.environ.get("LOCAL_RANK", "0") == "0":
        print(f"{launch_name()}: error: {error}", file=sys.stderr, flush=True)
    else:
        time.sleep(2)
