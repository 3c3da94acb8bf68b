"""python -m tests.fuzz SECONDS [target ...]

Each target gets its share of the time in a process of its own: half of it with atheris, which looks for inputs that
reach new code, if it is installed (pip install atheris), and half, or all, with hypothesis. Inputs that reached
something new are kept in $TRIZONE_FUZZ or ~/.cache/trizone-fuzz. Leaves with status 1 when a target failed, and shows
the input.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ENGINES = ("atheris", "hypothesis")
GRACE_SECONDS = 600
"""The engines end by themselves; on a busy machine, a round that has begun takes its time."""


def engines() -> list[str]:
    """What can be used here."""
    return [engine for engine in ENGINES if importlib.util.find_spec(engine) is not None]


def run(engine: str, target: str, seconds: float, corpus: Path) -> bool:
    """Fuzz one target with one engine; whether it held."""
    print(f"{target} with {engine}, {seconds:.0f} s", flush=True)
    command = [sys.executable, "-m", f"tests.fuzz.with_{engine}", target, str(int(seconds)), str(corpus)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + GRACE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        print(f"{target} hangs")
        return False
    lines = (done.stdout + done.stderr).strip().splitlines()
    counts = [line for line in lines if "executed_units" in line or line.endswith(" inputs")]
    print("\n".join(lines[-60:] if done.returncode else counts), flush=True)
    return done.returncode == 0


def main(arguments: list[str]) -> int:
    """Fuzz the targets named, or all."""
    from tests.fuzz.targets import TARGETS

    if not arguments or not arguments[0].isdigit() or not set(arguments[1:]) <= set(TARGETS):
        print(f"python -m tests.fuzz SECONDS [{' '.join(TARGETS)}]")
        return 2
    chosen, able = arguments[1:] or list(TARGETS), engines()
    if "atheris" not in able:
        print("atheris is not installed: hypothesis alone")
    home = Path(os.environ.get("TRIZONE_FUZZ") or Path.home() / ".cache" / "trizone-fuzz")
    share = int(arguments[0]) / len(chosen) / len(able)
    held = [run(engine, target, share, home / target) for target in chosen for engine in able]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
