"""What regions tell each other of their tables: all of it once, then a hash, and all again to whoever has forgotten."""

from __future__ import annotations

from cluster.wire import regions_pb2
from dynamo.regions import made_global
from dynamo.table import Table
from replicator.exchange import Heard, Told
from tests.unit.partition_samples import TABLE
from tests.unit.regional_samples import EAST, WEST


def ask(east: Heard, west: Heard, mine: Told, theirs: Told) -> tuple[regions_pb2.ExchangeRequest, object, object]:
    """One exchange; the request, and what each of them knows of the other then."""
    request = east.request(EAST, WEST, mine)
    heard = west.asked(request)
    reply = west.reply(request, theirs) if heard is not None else west.reply(request, theirs, not_known=True)
    return request, heard, east.answered(WEST, mine, reply)


def named(table: Table) -> dict[str, Table]:
    return {table.name: table}


def test_tables_are_told_once() -> None:
    here, there = made_global(TABLE, EAST, 1), made_global(TABLE, WEST, 2)
    east, west, mine, theirs = Heard(), Heard(), Told([here]), Told([there])
    request, heard, answered = ask(east, west, mine, theirs)
    assert (list(request.tables), heard, answered) == (mine.states, named(here), named(there))
    request, heard, answered = ask(east, west, mine, theirs)
    assert (list(request.tables), heard, answered) == ([], named(here), named(there))


def test_what_changed_is_told() -> None:
    here, there = made_global(TABLE, EAST, 1), made_global(TABLE, WEST, 2)
    east, west = Heard(), Heard()
    ask(east, west, Told([here]), Told([there]))
    changed = made_global(TABLE, EAST, 7)
    _, heard, answered = ask(east, west, Told([changed]), Told([]))
    assert (heard, answered) == (named(changed), {})


def test_whoever_has_forgotten_is_told_again() -> None:
    here, there = made_global(TABLE, EAST, 1), made_global(TABLE, WEST, 2)
    east, mine, theirs = Heard(), Told([here]), Told([there])
    ask(east, Heard(), mine, theirs)
    restarted = Heard()
    _, heard, answered = ask(east, restarted, mine, theirs)
    assert (heard, answered) == (None, named(there))
    _, heard, answered = ask(east, restarted, mine, theirs)
    assert (heard, answered) == (named(here), named(there))


def test_what_could_not_be_taken_over_is_told_again() -> None:
    here = made_global(TABLE, EAST, 1)
    east, west, mine = Heard(), Heard(), Told([here])
    request = east.request(EAST, WEST, mine)
    west.asked(request)
    east.answered(WEST, mine, west.reply(request, Told([]), error="auto-admin does not answer"))
    assert list(east.request(EAST, WEST, mine).tables) == mine.states
