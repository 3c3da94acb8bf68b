"""Transfers between accounts, and looks at all of them at once: money must neither come up nor get lost.

Each transfer also leaves a receipt, in the same transaction, so that the end tells which transfers happened: an item of
another table, or an attribute of both accounts, which may be in one partition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from tests.simulation.workloads.client import Client, Reply

ACCOUNTS, RECEIPTS = "accounts", "receipts"
OPENING = 100
CONFLICTS = frozenset({"TransactionCanceledException", "TransactionConflictException"})


@dataclass(slots=True)
class Transfer:
    """What a client asked for. `done`: whether it happened, as the client heard; None: it heard nothing clear."""

    number: str
    source: int
    target: int
    amount: int
    inner: bool
    """Whether the receipt is on the accounts."""
    done: bool | None = None


@dataclass
class Bank:
    """What all clients did and saw. Of `accounts` there are at most 100, so that one transaction reads all."""

    accounts: int = 8
    transfers: list[Transfer] = field(default_factory=list)
    touches: list[bool | None] = field(default_factory=list)
    """Single writes to accounts: done or refused; None: unknown."""
    looks: int = 0
    wrong: list[str] = field(default_factory=list)


def table_definition(name: str) -> dict[str, Any]:
    """A table of the bank."""
    return {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    }


def account(number: int) -> dict[str, Any]:
    """The key of an account."""
    return {"id": {"S": f"account-{number}"}}


def balance_of(item: dict[str, Any]) -> int:
    """What is on an account; an account that nobody has used yet is as it was opened."""
    return OPENING + int(item.get("n", {"N": "0"})["N"])


class BankWorkload:
    """One client's share of the work."""

    def __init__(self, client: Client, bank: Bank, random: Random) -> None:
        self._client = client
        self._bank = bank
        self._random = random
        self._numbers = count(1)

    async def step(self) -> None:
        """One operation."""
        chance = self._random.random()
        if chance < 0.55:
            await self._transfer()
        elif chance < 0.65:
            await self._touch()
        else:
            await self.look()

    async def look(self) -> bool:
        """Read all accounts at once; whether that was answered with them."""
        gets = [{"Get": {"TableName": ACCOUNTS, "Key": account(number)}} for number in range(self._bank.accounts)]
        reply = await self._client.call("TransactGetItems", {"TransactItems": gets})
        if not self._expected(reply, CONFLICTS) or reply is None or reply.error:
            return False
        balances = [balance_of(each.get("Item", {})) for each in reply.body["Responses"]]
        self._bank.looks += 1
        if sum(balances) != len(balances) * OPENING:
            self._bank.wrong.append(f"{self._client.name} saw {balances}, in all {sum(balances)}")
        return True

    async def _transfer(self) -> None:
        source, target = self._random.sample(range(self._bank.accounts), 2)
        number, inner = f"{self._client.name}-{next(self._numbers)}", self._random.random() < 0.5
        transfer = Transfer(number, source, target, self._random.randint(1, 9), inner)
        self._bank.transfers.append(transfer)
        reply = await self._client.call("TransactWriteItems", self._request(transfer))
        if not self._expected(reply, CONFLICTS) or reply is None:
            return
        if not reply.error:
            transfer.done = True
            if not transfer.inner and self._random.random() < 0.5:
                await self._see_receipt(transfer)
        elif not reply.doubtful:
            transfer.done = False

    async def _see_receipt(self, transfer: Transfer) -> None:
        """Who was answered finds it done."""
        key = {"id": {"S": transfer.number}}
        reply = await self._client.call("GetItem", {"TableName": RECEIPTS, "Key": key, "ConsistentRead": True})
        if reply is not None and not reply.error and "Item" not in reply.body:
            self._bank.wrong.append(f"{transfer} was answered, and is not there")

    def _request(self, transfer: Transfer) -> dict[str, Any]:
        receipt = transfer.number if transfer.inner else None
        actions = [
            _move(transfer.source, -transfer.amount, receipt),
            _move(transfer.target, transfer.amount, receipt),
        ]
        if receipt is None:
            actions.append({"Put": {"TableName": RECEIPTS, "Item": {"id": {"S": transfer.number}}}})
        self._random.shuffle(actions)
        return {"TransactItems": actions, "ClientRequestToken": transfer.number}

    async def _touch(self) -> None:
        """A single write to an account, which moves no money and so only gets in the way of others."""
        body = {
            "TableName": ACCOUNTS,
            "Key": account(self._random.randrange(self._bank.accounts)),
            "UpdateExpression": "ADD touched :one",
        }
        reply = await self._client.call("UpdateItem", {**body, "ExpressionAttributeValues": {":one": {"N": "1"}}})
        if self._expected(reply, CONFLICTS):
            unclear = reply is None or (bool(reply.error) and reply.doubtful)
            self._bank.touches.append(None if reply is None or unclear else not reply.error)

    def _expected(self, reply: Reply | None, errors: frozenset[str]) -> bool:
        if reply is None or not reply.error or reply.error in errors:
            return True
        if reply.error != "TransactionInProgressException":
            self._bank.wrong.append(f"{self._client.name} was answered {reply.error}: {reply.body}")
        return False


def _move(number: int, amount: int, receipt: str | None) -> dict[str, Any]:
    update = {"TableName": ACCOUNTS, "Key": account(number), "UpdateExpression": "ADD n :n"}
    if receipt is not None:
        update |= {"UpdateExpression": "ADD n :n SET #r = :n", "ExpressionAttributeNames": {"#r": receipt}}
    return {"Update": {**update, "ExpressionAttributeValues": {":n": {"N": str(amount)}}}}
