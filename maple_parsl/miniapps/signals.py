"""SIGUSR1 and SIGTERM, noted when they come and acted on between two steps."""

from __future__ import annotations

import faulthandler
import signal
from types import FrameType


class SignalFlags:
    """Which signals came since they were last asked for."""

    def __init__(self) -> None:
        self.save = False
        """SIGUSR1: save a checkpoint."""
        self.stop = False
        """SIGTERM: save a checkpoint and stop."""

    def install(self) -> None:
        """Takes over both signals, for the main thread."""
        signal.signal(signal.SIGUSR1, self._note)
        faulthandler.register(signal.SIGUSR2)  # a watchdog asks where this process is
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            self.stop = True
        else:
            self.save = True
