"""The books of the bank are right: every transfer happened wholly, once or not at all, and clients heard the truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dynamo import codec
from dynamo.values import Item, load
from storagenode.hosted import HostedReplica
from tests.simulation.checkers.replicas import replicas_of
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.workloads.bank import OPENING, Bank, balance_of


def wrong_books(found: Iterable[Item], bank: Bank) -> Iterator[str]:
    """What does not add up. `found`: all items of the bank's tables, once nothing is under way any more."""
    items = {item["id"].get("S", ""): item for item in found}
    accounts = [items.get(f"account-{number}", {}) for number in range(bank.accounts)]
    balances = [balance_of(account) for account in accounts]
    if sum(balances) != bank.accounts * OPENING:
        yield f"the accounts hold {balances}, in all {sum(balances)}"
    booked = [OPENING] * bank.accounts
    for transfer in bank.transfers:
        happened = transfer.number in (accounts[transfer.source] if transfer.inner else items)
        if transfer.inner and (transfer.number in accounts[transfer.target]) is not happened:
            yield f"{transfer} happened on one side"
        if happened:
            booked[transfer.source] -= transfer.amount
            booked[transfer.target] += transfer.amount
        if transfer.done is not None and transfer.done is not happened:
            yield f"{transfer} {'happened' if happened else 'did not happen'}"
    if booked != balances:
        yield f"the receipts add up to {booked}, the accounts hold {balances}"
    touched = sum(int(account.get("touched", {"N": "0"})["N"]) for account in accounts)
    least, most = bank.touches.count(True), len(bank.touches) - bank.touches.count(False)
    if not least <= touched <= most:
        yield f"accounts were touched {touched} times, clients did so {least} to {most} times"


def marks_left(cluster: SimulatedCluster) -> list[str]:
    """Items that transactions still hold."""
    return [
        f"partition {hosted.partition_id}: {key.hex()}"
        for hosted in _first_replicas(cluster)
        for key in hosted.partition.marks
    ]


def all_items(cluster: SimulatedCluster) -> Iterator[Item]:
    """Every item of every table, the ledger's rows included."""
    for hosted in _first_replicas(cluster):
        for _, stored in hosted.store.scan(b"", b""):
            yield load(codec.body_of(stored))


def _first_replicas(cluster: SimulatedCluster) -> list[HostedReplica]:
    return [members[0] for members in replicas_of(cluster).values()]
