"""python -m tests.fuzz.with_atheris TARGET SECONDS CORPUS: a target under libFuzzer, guided by what
inputs reach."""

# mypy: ignore-errors
from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["dynamo", "router"]):
    from tests.fuzz.targets import TARGETS, seeds

INPUT_SIZE_MAX = 4_096
HANG_SECONDS = 20


def main(target: str, seconds: str, corpus: str) -> None:
    """Never returns: libFuzzer ends the process."""
    folder = Path(corpus)
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds(target):
        (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)  # as libFuzzer names them
    options = [f"-max_total_time={seconds}", f"-max_len={INPUT_SIZE_MAX}", f"-timeout={HANG_SECONDS}"]
    options += [f"-artifact_prefix={folder.parent}/{target}-", "-print_final_stats=1", "-verbosity=0", str(folder)]
    atheris.Setup([sys.argv[0], *options], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
