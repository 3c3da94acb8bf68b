"""Text to tokens, and the syntax error that names a token.

The words AND, SET and so on are ordinary words here: which of them is a keyword depends on the kind of expression, so
the parser says so.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# A list index has no leading zero. Whatever no rule takes is a token of its own, which no grammar accepts, so that the
# error names it.
_PATTERN = re.compile(
    r"[ \t\r\n]+"
    r"|(?P<word>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<name>#[A-Za-z0-9_]+)"
    r"|(?P<value>:[A-Za-z0-9_]+)"
    r"|(?P<index>0|[1-9][0-9]*)"
    r"|(?P<symbol><>|<=|>=|[=<>()\[\],.+-])"
    r"|(?P<stray>.)",
    re.DOTALL,
)


class Token(NamedTuple):
    """A token and its place in the text; `kind` is word, name (#n), value (:v), index, symbol, stray or end."""

    kind: str
    text: str
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """The tokens of an expression, the last of kind "end". Never fails."""
    tokens = [
        Token(match.lastgroup, match.group(), match.start(), match.end())
        for match in _PATTERN.finditer(text)
        if match.lastgroup is not None
    ]
    tokens.append(Token("end", "<EOF>", len(text), len(text)))
    return tokens


def syntax_error(text: str, tokens: list[Token], position: int) -> str:
    """DynamoDB's text for an unexpected token: it shows the text from the token before to the token after."""
    token = tokens[position]
    start = tokens[max(position - 1, 0)].start
    end = tokens[min(position + 1, len(tokens) - 1)].end
    return f'Syntax error; token: "{token.text}", near: "{text[start:end]}"'
