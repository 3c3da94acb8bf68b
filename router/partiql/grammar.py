"""The statements that DynamoDB takes, as a grammar for an LALR parser.

Reading is iterative however deep a statement nests: `read` gives a tree for `build` to walk without recursion.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from router.partiql.faults import fault_at, malformed
from router.partiql.words import FUNCTIONS, KEYWORDS, RESERVED

NESTING_MAX = 100
"""Brackets of all kinds inside each other. Three times what a value may nest."""

_GRAMMAR = r"""
start: (select | insert | update | delete | exists) _SEMICOLON?

select: _SELECT (everything | projection) _FROM source [alias] [where] [order]
insert: _INSERT _INTO source _VALUE _sum [returning]
update: _UPDATE source [alias] changes [where] [returning]
      | _FROM source [alias] [where] changes [returning] -> update_from
delete: _DELETE _FROM source [alias] [where] [returning]
exists: EXISTS _OPEN select _CLOSE

everything: _STAR
projection: projected (_COMMA projected)*
projected: _sum [alias]
source: name (_DOT name)*
alias: _AS? name
where: _WHERE _condition
order: _ORDER _BY order_key (_COMMA order_key)*
order_key: _sum [DIRECTION]
returning: _RETURNING EXTENT AGE _STAR

changes: _change+
_change: _SET assignment (_COMMA assignment)* | _REMOVE removal (_COMMA removal)*
assignment: path EQUAL _sum
removal: path

_condition: _conjunction | either
either: _condition _OR _conjunction
_conjunction: _negation | both
both: _conjunction _AND _negation
_negation: _comparison | negated
negated: _NOT _negation
_comparison: _sum | compare | between | not_between | among | not_among | of_type | not_of_type
compare: _sum (COMPARATOR | EQUAL) _sum
between: _sum _BETWEEN _sum _AND _sum
not_between: _sum _NOT _BETWEEN _sum _AND _sum
among: _sum _IN _sum
not_among: _sum _NOT _IN _sum
of_type: _sum _IS type
not_of_type: _sum _IS _NOT type
type: _type_word _type_word?
_type_word: NAME | RESERVED | FUNCTION | NULL | MISSING

_sum: _signed | arithmetic
arithmetic: _sum SIGN _signed
_signed: _primary | signed
signed: SIGN _signed
_primary: string | number | truth | null | missing | parameter | sequence | bag | record | path | call
        | _OPEN _condition _CLOSE

string: STRING
number: NUMBER
truth: TRUE | FALSE
null: NULL
missing: MISSING
parameter: PARAMETER
sequence: OPEN_LIST [_sum (_COMMA _sum)*] _CLOSE_LIST
    | _OPEN _condition (_COMMA _condition)+ _CLOSE
bag: OPEN_BAG [_sum (_COMMA _sum)*] _CLOSE_BAG
record: OPEN_TUPLE [pair (_COMMA pair)*] _CLOSE_TUPLE
pair: STRING _COLON _sum

path: name _step*
_step: _DOT name | OPEN_LIST (index | key) _CLOSE_LIST
index: NUMBER
key: STRING
name: NAME | QUOTED
call: (NAME | FUNCTION | EXISTS) _OPEN [everything | _condition (_COMMA _condition)*] _CLOSE

STRING: /'(?:[^']|'')*'/
QUOTED: /"(?:[^"]|"")*"/
NUMBER: /(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/
NAME: /[A-Za-z_$][A-Za-z0-9_$]*/
PARAMETER: "?"
COMPARATOR: "<=" | ">=" | "<>" | "!=" | "<" | ">"
EQUAL: "="
SIGN: "+" | "-"
_STAR: "*"
_COMMA: ","
_DOT: "."
_COLON: ":"
_SEMICOLON: ";"
_OPEN: "("
_CLOSE: ")"
OPEN_LIST: "["
_CLOSE_LIST: "]"
OPEN_TUPLE: "{"
_CLOSE_TUPLE: "}"
OPEN_BAG.1: "<<"
_CLOSE_BAG.1: ">>"
COMMENT.2: /--[^\r\n]*/ | /\/\*(?:[^*]|\*(?!\/))*\*\//

%ignore /[ \t\r\n\f\x0b]+/
%ignore COMMENT
"""

_OPENING = frozenset({"_OPEN", "OPEN_LIST", "OPEN_TUPLE", "OPEN_BAG"})
_CLOSING = frozenset({"_CLOSE", "_CLOSE_LIST", "_CLOSE_TUPLE", "_CLOSE_BAG"})


class _Words:
    """Between lexer and parser: finds the words that mean something, in any case, and how deep brackets nest."""

    always_accept = ()

    def process(self, tokens: Iterator[Token]) -> Iterator[Token]:
        depth = 0
        for token in tokens:
            kind = token.type
            if kind == "NAME":
                token.type = _terminal(token.lower())
            elif kind in _OPENING:
                depth += 1
                if depth > NESTING_MAX:
                    raise malformed(f"Brackets are nested more than {NESTING_MAX} deep")
            elif kind in _CLOSING:
                depth -= 1
            yield token


def _terminal(word: str) -> str:
    terminal = KEYWORDS.get(word)
    if terminal is not None:
        return terminal
    if word in FUNCTIONS:
        return "FUNCTION"
    return "RESERVED" if word in RESERVED else "NAME"


@cache
def _parser() -> Lark:
    """Made with the first statement: it takes a while."""
    declared = " ".join(sorted({*KEYWORDS.values(), "FUNCTION", "RESERVED"}))
    return Lark(
        f"{_GRAMMAR}\n%declare {declared}",
        parser="lalr",
        lexer="basic",
        postlex=_Words(),
        maybe_placeholders=True,
        propagate_positions=False,
    )


def read(text: str) -> Tree[Token]:
    """The syntax tree of a statement. Raises ValidationException with DynamoDB's text."""
    try:
        return _parser().parse(text)
    except UnexpectedToken as found:
        raise fault_at(found) from None
    except UnexpectedCharacters:
        raise malformed() from None
