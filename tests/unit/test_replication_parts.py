"""The small parts of replication: quorum, membership, log, progress, timing."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from replication.log import ENTRY_OVERHEAD, Log, LogSummary
from replication.membership import Membership
from replication.messages import Entry
from replication.progress import Progress
from replication.quorum import is_majority, reached_by_majority
from replication.timing import Timing


def test_majority_against_its_definition() -> None:
    """The greatest value that more than half have reached, for every assignment of four values to up to five voters."""
    for size in range(1, 6):
        membership = Membership(tuple(range(1, size + 1)))
        for values in product(range(4), repeat=size):
            best = max(value for value in range(4) if 2 * sum(other >= value for other in values) > size)
            assert reached_by_majority(membership, lambda voter, at=values: at[voter - 1]) == best  # type: ignore[misc]


@pytest.mark.parametrize(("replicas", "expected"), [({1}, False), ({1, 9}, False), ({1, 3}, True), ({1, 2, 3}, True)])
def test_majority_counts_voters_only(replicas: set[int], expected: bool) -> None:
    """Strangers do not vote."""
    assert is_majority(Membership((1, 2, 3)), replicas) is expected


@pytest.mark.parametrize("membership", [Membership((1,)), Membership((5, 2**63, 7), version=2**40)])
def test_membership_round_trip(membership: Membership) -> None:
    """Bytes and back."""
    assert Membership.decode(membership.encode()) == membership


@pytest.mark.parametrize("data", [b"", b"\x03" + Membership((1, 2)).encode()[1:], Membership((1, 2)).encode() + b"x"])
def test_membership_refuses_other_bytes(data: bytes) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match="membership"):
        Membership.decode(data)


@pytest.mark.parametrize("voters", [(1, 1), (0, 1)])
def test_membership_needs_distinct_voters(voters: tuple[int, ...]) -> None:
    """Zero stands for nobody."""
    with pytest.raises(ValueError, match="voters"):
        Membership(voters)


def test_drift_margin_covers_the_worst_clocks() -> None:
    """A slow leader, a fast voter and a fast successor: the wait ends, in real time, when the old lease does."""
    timing = Timing(drift=0.05)
    answered = 0.2  # real seconds between the beat and the vote
    left = timing.lease - answered * (1 + timing.drift)
    waited = (left + timing.drift_margin) / (1 + timing.drift)
    assert answered + waited == pytest.approx(timing.lease / (1 - timing.drift))


@pytest.mark.parametrize("bad", [{"lease": 0.1}, {"election_min": 0.5}, {"election_max": 0.6}, {"drift": 1.0}])
def test_timing_refuses_nonsense(bad: dict[str, float]) -> None:
    """Safety rests on lease < election timeout."""
    with pytest.raises(ValueError, match=r"must hold|fraction"):
        Timing(**bad)


def entries(*epochs: int, first: int = 1) -> list[Entry]:
    """Entries of these epochs."""
    return [Entry(epoch, first + index, b"%d" % epoch) for index, epoch in enumerate(epochs)]


def test_log_against_a_list() -> None:
    """Appending, cutting and forgetting, as a plain list of entries would."""
    random = Random(5)
    log, twin, epoch, remembered = Log(LogSummary()), list[Entry](), 1, 1
    for _ in range(3000):
        if random.random() < 0.2:
            epoch += 1
        if twin and random.random() < 0.2:
            position = random.randint(max(1, len(twin) - 5), len(twin))
            log.cut(position)
            del twin[position - 1 :]
            remembered = min(remembered, position)
            epoch += 1
        elif random.random() < 0.2:
            upto = random.randint(0, len(twin))
            log.forget(upto)
            remembered = max(remembered, upto + 1)
        else:
            more = entries(*[epoch] * random.randint(1, 4), first=len(twin) + 1)
            log.append(more)
            twin += more
        kept = twin[remembered - 1 :]
        assert (log.last_position, log.last_epoch) == (len(twin), twin[-1].epoch if twin else 0)
        assert log.memory_first == remembered
        assert log.between(remembered, len(twin)) == tuple(kept)
        assert log.memory_bytes == sum(len(entry.payload) + ENTRY_OVERHEAD for entry in kept)
        for position in {1, len(twin) // 2, len(twin)} - {0}:
            if position <= len(twin):
                assert log.epoch_at(position) == twin[position - 1].epoch
        bound = random.randint(0, epoch)
        last = random.randint(0, len(twin))
        assert log.last_not_above(last, bound) == max([e.position for e in twin[:last] if e.epoch <= bound], default=0)
    assert log.epoch_at(0) == 0
    assert log.epoch_at(len(twin) + 1) is None


def test_take_fits_and_never_starves() -> None:
    """As many as fit, and one in any case."""
    log = Log(LogSummary())
    log.append(entries(1, 1, 1))
    one = 1 + ENTRY_OVERHEAD
    assert [len(log.take(1, size)) for size in (0, one, 2 * one - 1, 2 * one, 99 * one)] == [1, 1, 1, 2, 3]


def test_shrink_spares_what_is_not_applied() -> None:
    """The bound is kept by dropping old entries, up to the one named."""
    log = Log(LogSummary())
    log.append(entries(1, 1, 1, 1))
    log.shrink(2 * (1 + ENTRY_OVERHEAD), upto=4)
    assert log.memory_first == 3
    log.shrink(0, upto=3)
    assert log.memory_first == 4


def test_trimmed_log_knows_the_epoch_before_it() -> None:
    """The snapshot's position and epoch are what the first entry follows."""
    log = Log(LogSummary(last_position=12, spans=((3, 9), (4, 11)), first_position=10))
    assert [log.epoch_at(position) for position in (8, 9, 10, 11, 12)] == [None, 3, 3, 4, 4]


@pytest.mark.parametrize("bad", [entries(2, first=3), entries(1, first=2)])
def test_log_asserts_its_order(bad: list[Entry]) -> None:
    """No gap, and no falling epoch."""
    log = Log(LogSummary())
    log.append(entries(2))
    with pytest.raises(AssertionError):
        log.append(bad)


def test_progress_never_falls_behind_its_match() -> None:
    """A late refusal may ask for less than is known to match; it does not get it."""
    progress = Progress(next=11)
    progress.sent(14)
    assert progress.accepted(14)
    progress.refused(3)
    assert (progress.match, progress.next, progress.probing) == (14, 15, True)
    assert not progress.accepted(12)
    assert (progress.match, progress.next, progress.probing) == (14, 15, False)


def test_progress_probes_one_at_a_time() -> None:
    """Until the peer answers, nothing more is sent; a broken lane lets it ask again."""
    progress = Progress(next=5)
    assert not progress.waits()
    progress.sent(9)
    assert progress.waits()
    progress.restart(progress.match + 1)
    assert (progress.next, progress.waits()) == (1, False)
