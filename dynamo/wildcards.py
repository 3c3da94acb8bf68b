"""Patterns of policies: `*` for any text, `?` for one character, `${name}` for a value of the request.

Matching takes time in proportion to text and pattern, whatever a hostile pattern looks like: between stars the first
place that fits is as good as any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_LITERALS = {"*": "*", "?": "?", "$": "$"}
_MARK = "\0"
"""Stands in a pattern before a character that means itself. No text of a policy holds it."""

GLOBS_MAX = 4_096


class Glob:
    """A pattern without variables."""

    __slots__ = ("_first", "_last", "_middle", "_only")

    def __init__(self, pattern: str) -> None:
        parts = [_Part(part) for part in _split_at_stars(pattern)]
        self._only = parts[0] if len(parts) == 1 else None
        self._first, self._last = parts[0], parts[-1]
        self._middle = [part for part in parts[1:-1] if part.size]

    def matches(self, text: str) -> bool:
        """Whether the whole of `text` fits."""
        if self._only is not None:
            return len(text) == self._only.size and self._only.fits(text, 0)
        end = len(text) - self._last.size
        if end < self._first.size or not self._first.fits(text, 0) or not self._last.fits(text, end):
            return False
        place = self._first.size
        for part in self._middle:
            place = part.find(text, place, end)
            if place < 0:
                return False
            place += part.size
        return True


class _Part:
    """What stands between two stars: a text, or an expression where some characters are any."""

    __slots__ = ("_expression", "_text", "size")

    def __init__(self, pattern: str) -> None:
        self._text = pattern.replace(_MARK, "")
        self.size = len(self._text)
        self._expression: re.Pattern[str] | None = None
        if re.search(rf"(?<!{_MARK})\?", pattern):
            source = re.sub(
                rf"{_MARK}(.)|(.)",
                lambda found: "." if found[2] == "?" else re.escape(found[1] or found[2]),
                pattern,
                flags=re.DOTALL,
            )
            self._expression = re.compile(source, re.DOTALL)

    def fits(self, text: str, place: int) -> bool:
        if self._expression is None:
            return text.startswith(self._text, place)
        return self._expression.match(text, place) is not None

    def find(self, text: str, start: int, end: int) -> int:
        if self._expression is None:
            return text.find(self._text, start, end)
        found = self._expression.search(text, start, end)
        return -1 if found is None else found.start()


def _split_at_stars(pattern: str) -> list[str]:
    return re.split(rf"(?<!{_MARK})\*", pattern)


@lru_cache(maxsize=GLOBS_MAX)
def glob(pattern: str) -> Glob:
    """The pattern, compiled; those in use are kept."""
    return Glob(pattern)


def variables(pattern: str) -> list[str]:
    """The names of its variables, in lower case."""
    return [name.lower() for name in _VARIABLE.findall(pattern) if name not in _LITERALS]


def filled(pattern: str, values: Mapping[str, tuple[str, ...]], *, wild: bool = True) -> str | None:
    """The pattern with the values of its variables, which mean themselves, stars and all; None when one has no single
    value. With `wild` False the result is a plain text."""
    if "${" not in pattern:
        return pattern
    missing = False

    def value(found: re.Match[str]) -> str:
        nonlocal missing
        text = _LITERALS.get(found[1])
        if text is None:
            several = values.get(found[1].lower(), ())
            if len(several) != 1:
                missing = True
                return ""
            text = several[0]
        return re.sub(r"([*?])", rf"{_MARK}\1", text.replace(_MARK, "")) if wild else text

    text = _VARIABLE.sub(value, pattern)
    return None if missing else text
