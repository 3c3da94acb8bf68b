"""`trizone up`, but storage nodes have settings that its command line does not offer.

python -m tests.chaos.tuned_up --data DIR --port N --tuned '{"log_bytes_max": 25165824}'
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from cluster.settings import StorageNodeSettings
from trizone import ports
from trizone.composition import Member
from trizone.data_directory import DataDirectory
from trizone.launcher import Launcher, UpOptions, found_or_founded
from trizone.supervisor import Child


class TunedLauncher(Launcher):
    """Tells storage nodes something else."""

    tuned: Mapping[str, Any]

    def _child(self, member: Member) -> Child:
        if isinstance(member.settings, StorageNodeSettings):
            member = replace(member, settings=msgspec.structs.replace(member.settings, **self.tuned))
        return super()._child(member)


def main() -> int:
    """Run until a signal comes; the exit code."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument("--tuned", type=json.loads, required=True)
    asked = arguments.parse_args()
    TunedLauncher.tuned = asked.tuned
    options = UpOptions(asked.data, asked.port)
    directory = DataDirectory(options.data)
    directory.lock()
    with ports.hold(options.port) as holder:
        return asyncio.run(TunedLauncher(directory, found_or_founded(directory, options), options, holder).run())


if __name__ == "__main__":
    sys.exit(main())
