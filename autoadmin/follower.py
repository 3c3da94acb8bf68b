"""One stream to whom the catalog is pushed: at first from what its other end holds, then every change at once."""

from __future__ import annotations

import asyncio

from autoadmin.executor import Control
from cluster.transport import Stream, TransportError


class Follower:
    """Pushes to one stream. Changes that come while a message is on its way go together in the next."""

    def __init__(self, control: Control, stream: Stream, epoch: int, version: int) -> None:
        self._control = control
        self._stream = stream
        self._at = (epoch, version)
        self._owed = True  # at least one message, so that the other end knows that it is in touch
        self._wake = asyncio.Event()

    def restart(self, epoch: int, version: int) -> None:
        """Go on from another version: the other end asks for it."""
        self._at = (epoch, version)
        self._owed = True
        self._wake.set()

    async def run(self) -> None:
        """Push until the stream breaks or the task is cancelled."""
        self._control.listen(self._wake.set)
        try:
            while True:
                self._wake.clear()
                if self._owed or self._at != self._control.topology.at:
                    message = self._control.difference(*self._at)
                    self._owed, self._at = False, self._control.topology.at
                    await self._stream.send(message)
                else:
                    await self._wake.wait()
        except TransportError:
            self._stream.close()
        finally:
            self._control.forget(self._wake.set)
