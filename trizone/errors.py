"""What a user of the command line did or met that keeps a command from running."""

from __future__ import annotations


class CommandError(Exception):
    """One plain sentence for the user.

    The command ends with `code`: 2 for bad settings, a taken port or a data directory in use, else 1.
    """

    def __init__(self, sentence: str, code: int = 2) -> None:
        super().__init__(sentence)
        self.code = code
