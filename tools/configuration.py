#!/usr/bin/env python3
"""Writes docs/configuration.md from the settings classes: each setting, its default, and the text below it.

tools/configuration.py [FILE]      FILE: where to, if not there
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import msgspec  # noqa: E402

from cluster import settings as module  # noqa: E402

TARGET = ROOT / "docs" / "configuration.md"
SERVICES = {
    "StorageNodeSettings": "storagenode",
    "RouterSettings": "router",
    "AutoAdminSettings": "autoadmin",
    "ReplicatorSettings": "replicator",
}
SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))

HEAD = """\
# Settings

Made by `tools/configuration.py` from `cluster/settings.py`; `make generated` brings it up to date.

Every process is started by `trizone router|storagenode|autoadmin|replicator` with its settings:

```sh
trizone storagenode --config cluster.toml --config node.toml
```

- `--config` names a TOML file and may be given several times. Later files win over earlier ones, so that what all
  processes of a cluster share (`trizone cluster init` writes it) is in one file, and what is one's own in another.
- The environment wins over all files: `TRIZONE_LISTEN` stands for the setting `listen`, and so on. Lists are written
  with commas. A variable that begins so and stands for no setting of any service is an error.
- A setting that does not exist or does not fit ends the process with one sentence and exit code 2.
- Addresses are `host:port`; port 0 picks a free one. Durations are in seconds, sizes in bytes.
- Settings are read at the start. Certificates alone are read again when their files change.

`trizone up` writes these files by itself, into `config/` of its data directory.
"""


def configuration() -> str:
    """The page's content."""
    classes = _classes()
    shared = list(module.Settings.__struct_fields__)
    content = HEAD + "\n## Every process\n\n" + _section(module.Settings, shared, classes["Settings"])
    for name, service in SERVICES.items():
        kind = getattr(module, name)
        own = [field for field in kind.__struct_fields__ if field not in shared]
        about = (kind.__doc__ or "").strip().splitlines()[0]
        content += f"\n## {service}\n\n{about}\n\n{_section(kind, own, classes[name])}"
    return content


def _classes() -> dict[str, dict[str, str]]:
    """By class and setting, the text below the setting."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    found: dict[str, dict[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            texts = found.setdefault(node.name, {})
            for field, text in zip(node.body, node.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    texts[field.target.id] = _text(text)
    return found


def _text(node: ast.stmt) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return " ".join(text.split())
    return ""


def _section(kind: type[msgspec.Struct], names: list[str], texts: dict[str, str]) -> str:
    hints = get_type_hints(kind)
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    lines = ["| setting | default | |", "| --- | --- | --- |"]
    for name in names:
        if not texts.get(name):
            raise SystemExit(f"{kind.__name__}.{name} has no text below it in cluster/settings.py.")
        text = texts[name].replace("|", "\\|")
        lines.append(f"| `{name}` | {_default(fields[name])} | {text}{_choices(hints[name])} |")
    return "\n".join(lines) + "\n"


def _default(field: Any) -> str:
    if field.required:
        return "required"
    value = field.default
    if value in ("", ()) or value is msgspec.NODEFAULT:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int) and value >= 1 << 10:
        for size, unit in SIZES:
            if value % size == 0:
                return f"`{value}` ({value // size} {unit})"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _choices(hint: Any) -> str:
    options = [repr(choice) for choice in get_args(hint)] if str(get_origin(hint)) == "typing.Literal" else []
    return f" One of {', '.join(f'`{option[1:-1]}`' for option in options)}." if options else ""


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else TARGET).write_text(configuration(), encoding="utf-8")
