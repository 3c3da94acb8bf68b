"""Stories of three replicas, told as transcripts: a command, a line of dashes, what it brought about.

Each file of tests/data/replication is one story. `--` begins a comment that belongs to the story. Run with REWRITE=1 to
write what happens now into the files; the difference is then what a reviewer reads. Commands:

    stand N                   the election timer of replica N goes off
    deliver [A>B] [KIND]      messages arrive, on that link or of that kind only, until none is left
    drop [A>B] [KIND]         such messages are lost, the link's lane breaks
    flush [N]                 what N handed over is on its disk, and what waited for that leaves
    apply [N]                 what N was handed out is applied
    settle                    all of these, for all, until nothing happens any more (and says nothing of it)
    lanes [A>B] [one]         free lanes take what the core has for them, or one entry of it
    propose N TEXT...         the leader appends commands
    time SECONDS              the clock goes on; deadlines that pass are kept
    beat A>B...               a beat of A arrives at B and is answered
    crash N, restart N        without its flush; the state stays (but for lose_state N)
    trim N FIRST              a snapshot is made of what N has applied, and its log before FIRST goes
    install N FROM, installed N   FROM's snapshot is durable at N; its state is in place
    ask N                     the leader asks those that needed a snapshot whether they have it
    hand_over N TO, step_down N, quorum N (has a majority answered of late?)
    join N [log]              a new replica, which was told nothing; with `log` it keeps only the log
    change N learner M [log], change N remove M, change N promote M...   the leader takes a step of membership
    show                      all replicas
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from replication.changes import AddLearner, Change, Promote, RemoveLearner
from replication.contact import NodeContact
from replication.effects import Effects, HardState, Install
from replication.heartbeats import FollowerBeats, LeaderBeats
from replication.lease import NEVER
from replication.membership import UNKNOWN, Member, Membership
from replication.messages import (
    FIRST_OF_EPOCH,
    MEMBERSHIP,
    Append,
    AppendReply,
    Entry,
    HandOver,
    Message,
    VoteReply,
    VoteRequest,
)
from replication.replica import Replica
from replication.timing import Timing
from tests.unit.replication_member import Disk, Installed
from tests.unit.replication_member import Member as MemberShell

STORIES = sorted((Path(__file__).parent.parent / "data" / "replication").glob("*.txt"))
TIMING = Timing()
NUMBERS = (1, 2, 3)
EVERYBODY = (1, 2, 3, 4, 5)
PARTITION = 7


def told(message: Message) -> str:
    """A message in one line."""
    head = f"{message.sender} > {message.to} {type(message).__name__} epoch={message.epoch}"
    match message:
        case VoteRequest():
            flags = " pre" * message.pre + " ordered" * message.ordered
            return f"{head}{flags} last={message.last_position}@{message.last_epoch}"
        case VoteReply():
            left = f" lease_left={message.lease_left:.3f}" if message.lease_left else ""
            return f"{head}{' pre' * message.pre} {'granted' if message.granted else 'refused'}{left}"
        case Append():
            previous = f"{message.previous_position}@{message.previous_epoch}"
            lowest = " lowest" * message.lowest
            return f"{head}{lowest} after={previous} entries=[{entries_told(message.entries)}] commit={message.commit}"
        case AppendReply(accepted=True):
            return f"{head} match={message.match}"
        case AppendReply():
            return f"{head} refused try={message.match}@{message.hint_epoch}"
        case HandOver():
            return head


def entries_told(entries: tuple[Entry, ...] | list[Entry]) -> str:
    """Entries as position@epoch:text."""
    return " ".join(f"{entry.position}@{entry.epoch}:{content_told(entry)}" for entry in entries)


def content_told(entry: Entry) -> str:
    """What an entry says; of a membership the voters, the old ones while it is joint, and the learners."""
    if entry.kind == FIRST_OF_EPOCH:
        return "*"
    return membership_told(Membership.decode(entry.payload)) if entry.kind == MEMBERSHIP else entry.payload.decode()


def membership_told(membership: Membership) -> str:
    """Such as {1,2,4 and 1,2,3 +5}."""
    sets = [",".join(map(str, voters)) for voters in membership.sets()]
    return "{" + " ".join([" and ".join(sets), *(f"+{learner}" for learner in membership.learners)]) + "}"


class Stage:
    """Three replicas, one clock, and messages that wait for the story to deliver them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[str] = []
        self.network: list[Message] = []
        self.busy: set[tuple[int, int]] = set()
        self.disks = {number: Disk() for number in EVERYBODY}
        self.log_only: set[int] = set()
        self.members: dict[int, MemberShell] = {}
        for number in NUMBERS:
            self.start(number, NEVER)

    def start(self, number: int, restarted_at: float) -> None:
        """A new process."""
        peers = [peer for peer in EVERYBODY if peer != number]
        leads = {peer: LeaderBeats() for peer in peers}
        follows = {peer: FollowerBeats(TIMING, Random(number)) for peer in peers}
        self.members[number] = MemberShell(
            number,
            Membership(NUMBERS) if number in NUMBERS else UNKNOWN,
            TIMING,
            disk=self.disks[number],
            seed=number,
            now=self.now,
            restarted_at=restarted_at,
            contact=NodeContact(PARTITION, {peer: peer for peer in peers}, leads, follows),
            log_only=number in self.log_only,
            committed=lambda position: self.members[1].log[:position],
        )
        self.leads = {**getattr(self, "leads", {}), number: leads}
        self.follows = {**getattr(self, "follows", {}), number: follows}

    def run(self, command: str) -> str:
        """What a command brought about."""
        name, *words = command.split()
        self.lines = []
        getattr(self, f"do_{name}")(*words)
        return "\n".join(self.lines)

    def after(self, number: int, change: Callable[[], object]) -> None:
        """Makes a change and says what became of it."""
        member = self.members[number]
        before, commit = self.state(number), member.replica.commit
        change()
        for message in member.sent():
            self.network.append(message)
            self.lines.append(f"  sends {told(message)}")
        if self.state(number) != before:
            self.lines.append(f"  {number} {self.state(number)}")
        if member.replica.commit > commit:
            self.lines.append(f"  {number} commit {member.replica.commit}")
        if member.install is not None:
            self.lines.append(f"  {number} needs a snapshot of {member.install.position} from {member.install.source}")
            member.install = None

    def call(self, number: int, method: Callable[..., Effects], *arguments: object) -> None:
        """Calls the core and says what became of it."""
        member = self.members[number]
        self.after(number, lambda: member.perform(method(*arguments)))

    def state(self, number: int) -> str:
        """A replica's part, in words."""
        replica = self.members[number].replica
        serving = " serving" if replica.may_write() else ""
        of = f" of {replica.leader}" if replica.role == "follower" and replica.leader else ""
        return f"{replica.role}{of} epoch={replica.epoch}{serving}"

    def chosen(self, words: tuple[str, ...]) -> Iterator[Message]:
        """Takes messages from the network: of a link, of a kind."""
        for message in list(self.network):
            names = {f"{message.sender}>{message.to}", type(message).__name__}
            if set(words) <= names:
                self.network.remove(message)
                yield message

    def numbers(self, words: tuple[str, ...]) -> list[int]:
        """The replicas named, or all that run."""
        return [int(word) for word in words] or sorted(self.members)

    # Commands

    def do_stand(self, number: str) -> None:
        self.call(int(number), self.members[int(number)].replica.stand, self.now)

    def do_deliver(self, *words: str) -> None:
        while messages := list(self.chosen(words)):
            for message in messages:
                self.lines.append(told(message))
                if isinstance(message, AppendReply):
                    self.busy.discard((message.to, message.sender))
                if message.to in self.members:
                    self.call(message.to, self.members[message.to].replica.step, message, self.now)

    def do_drop(self, *words: str) -> None:
        for message in self.chosen(words):
            self.lines.append(f"lost: {told(message)}")
            lane = (message.to, message.sender) if isinstance(message, AppendReply) else (message.sender, message.to)
            if isinstance(message, Append | AppendReply):
                self.busy.discard(lane)
                if lane[0] in self.members:
                    self.members[lane[0]].replica.lane_broken(lane[1])

    def do_flush(self, *words: str) -> None:
        for number in self.numbers(words):
            member = self.members[number]
            for record in member.unflushed:
                if isinstance(record, HardState):
                    self.lines.append(f"{number} saves epoch={record.epoch} vote={record.vote}")
                elif isinstance(record, Entry):
                    self.lines.append(f"{number} has on disk {entries_told([record])}")
                elif isinstance(record, Installed):
                    anew = ", where its log begins anew" * record.covered.restarts
                    self.lines.append(f"{number} has on disk a snapshot of {record.covered.position}{anew}")
            self.after(number, member.flush)

    def do_apply(self, *words: str) -> None:
        for number in self.numbers(words):
            member = self.members[number]
            while member.to_apply or member.loading:
                if member.loading:
                    self.lines.append(f"{number} loads {member.loading[0]}..{member.loading[1]}")
                    member.load(1000)
                self.lines.append(f"{number} applies {entries_told(member.to_apply)}")
                self.after(number, member.apply)

    def do_trim(self, number: str, first: str) -> None:
        self.members[int(number)].trim(int(first))

    def do_install(self, number: str, source: str) -> None:
        member, disk = self.members[int(number)], self.disks[int(source)]
        wanted = member.replica.wanted_snapshot
        if wanted is None:
            self.lines.append(f"{number} needs no snapshot any more")
            return
        member.install = Install(int(source), wanted)
        membership = self.members[int(source)].replica.membership_at(disk.snapshot)
        self.after(int(number), lambda: member.begin_install(disk.entries[: disk.snapshot], membership))

    def do_installed(self, number: str) -> None:
        self.after(int(number), self.members[int(number)].finish_install)

    def do_lose_state(self, number: str) -> None:
        self.disks[int(number)].applied = 0

    def do_ask(self, number: str) -> None:
        self.call(int(number), self.members[int(number)].replica.ask_installing)

    def do_lanes(self, *words: str) -> None:
        max_bytes = 1 if "one" in words else 1 << 20
        for sender, to in permutations(sorted(self.members), 2):
            if (sender, to) in self.busy or (words and f"{sender}>{to}" not in words):
                continue
            append = self.members[sender].append_for(to, max_bytes)
            if append is not None:
                self.busy.add((sender, to))
                self.network.append(append)
                self.lines.append(f"  sends {told(append)}")

    def do_settle(self) -> None:
        for _ in range(50):
            self.lines = []
            for command in (self.do_lanes, self.do_flush, self.do_apply, self.do_deliver):
                command()
            if not self.lines:
                return
        raise AssertionError("never comes to rest")

    def do_propose(self, number: str, *texts: str) -> None:
        payloads = [text.encode() for text in texts]
        self.call(int(number), self.members[int(number)].replica.propose, payloads, self.now)

    def do_time(self, seconds: str) -> None:
        self.now += float(seconds)
        for number, member in sorted(self.members.items()):
            deadline = member.replica.deadline()
            if deadline is not None and deadline <= self.now:
                self.call(number, member.replica.tick, self.now)

    def do_beat(self, *links: str) -> None:
        for link in links:
            sender, to = map(int, link.split(">"))
            beats, leader, follower = self.leads[sender][to], self.members[sender].replica, self.members[to].replica
            follows = partial(_follows, follower)
            answer = self.follows[to][sender].receive(beats.beat(self.now), self.now, follows)
            for _, epoch, position in answer.commits:
                self.call(to, follower.commit_heard, position, epoch)
            for _, epoch in answer.withdrawn:
                self.lines.append(f"{to} hears that {sender} no longer leads epoch {epoch}")
                self.call(to, follower.leader_gone, epoch, self.now)
            for _ in beats.answered(answer.reply, self.now):
                self.lines.append(f"{to} does not follow {sender}")
                self.call(sender, leader.not_followed, to)

    def do_quorum(self, number: str) -> None:
        self.call(int(number), self.members[int(number)].replica.check_quorum, self.now)

    def do_crash(self, number: str) -> None:
        del self.members[int(number)]

    def do_restart(self, number: str) -> None:
        self.busy = {lane for lane in self.busy if int(number) not in lane}
        self.start(int(number), self.now)

    def do_hand_over(self, number: str, to: str) -> None:
        self.call(int(number), self.members[int(number)].replica.hand_over, int(to), self.now)

    def do_step_down(self, number: str) -> None:
        self.call(int(number), self.members[int(number)].replica.step_down, self.now)

    def do_join(self, number: str, *kind: str) -> None:
        if kind:
            self.log_only.add(int(number))
        self.start(int(number), NEVER)

    def do_change(self, number: str, step: str, *words: str) -> None:
        replica = self.members[int(number)].replica
        change: Change
        if step == "learner":
            change = AddLearner(Member(int(words[0]), int(words[0]), log_only="log" in words))
        elif step == "remove":
            change = RemoveLearner(int(words[0]))
        else:
            change = Promote(tuple(map(int, words)))
        try:
            self.call(int(number), replica.change, change, self.now)
        except ValueError as error:
            self.lines.append(f"  refused: {error}")

    def do_show(self) -> None:
        for number, member in sorted(self.members.items()):
            replica = member.replica
            read = " may read" if replica.may_read(self.now) else ""
            known = replica.membership not in (Membership(NUMBERS), UNKNOWN)
            members = f" {membership_told(replica.membership)}" if known else ""
            self.lines.append(
                f"{number} {self.state(number)}{read}{members} commit={replica.commit} applied={replica.applied} "
                f"durable={replica.durable} log=[{entries_told(member.log[member.disk.first - 1 :])}]"
            )


def _follows(replica: Replica, partition: int, epoch: int) -> bool:
    return partition == PARTITION and replica.follows(epoch)


def performed(story: str) -> str:
    """The story with what happens now under each command."""
    stage, out = Stage(), []
    for block in story.strip().split("\n\n"):
        before, _, _ = block.partition("\n----")
        lines = before.split("\n")
        happened = [stage.run(line) for line in lines if line and not line.startswith("--")]
        if all(line.startswith("--") for line in lines):
            out.append(before)
        else:
            out.append("\n".join([before, "----", *[text for text in happened if text]]))
    return "\n\n".join(out) + "\n"


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path) -> None:
    """What happens is what the file says."""
    story = path.read_text()
    now = performed(story)
    if os.environ.get("REWRITE"):
        path.write_text(now)
        story = now
    assert now == story


def test_there_are_stories() -> None:
    """An empty directory proves nothing."""
    assert len(STORIES) >= 8
