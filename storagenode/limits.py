"""What the operating system lets a storage node have."""

from __future__ import annotations

import resource


class LimitError(Exception):
    """A limit cannot be raised; the text says in one sentence what to do."""


def raise_open_files() -> int:
    """Raise the number of files that this process may have open to its hard limit, and return it.

    An LMDB environment takes three descriptors, and each segment of the log one. Raises LimitError.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return hard
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        raise LimitError(f"cannot raise the open files limit from {soft} to {hard}: {error}; see ulimit -n") from error
    return hard
