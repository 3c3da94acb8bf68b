"""A reader of a table's stream that keeps an aggregate: what each customer's orders come to.

    python examples/stream_aggregate.py http://127.0.0.1:8000

While orders are placed, changed and cancelled by several writers, a reader follows the stream and adds up. Now and then
it stops and another one goes on from its checkpoints. In the end the sums must be those of the table; exit code 1 if
they are not. The table goes at the end.

The reader keeps the rules of the Kinesis Client Library: shards are found by DescribeStream, a shard is read only when
its parent is finished, and a checkpoint is the sequence number of the last record that is in the aggregate.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import boto3

WRITERS = 4
CHANGES_PER_WRITER = 60
CUSTOMERS = ("ada", "grace", "edsger")
RECORDS_PER_READER = 20
PAUSE_SECONDS = 0.05
FINISHED = "finished"


def connect(service: str, endpoint: str) -> Any:
    """A boto3 client. Any credentials will do while the cluster does not check them."""
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )


@dataclass
class Totals:
    """The aggregate, and how far it has come: both would be written in one transaction where this is for real."""

    by_customer: Counter[str] = field(default_factory=Counter)
    checkpoints: dict[str, str] = field(default_factory=dict)
    """By shard: the sequence number of the last record in it, or `FINISHED`."""
    records: int = 0

    def take(self, shard: str, record: dict[str, Any]) -> None:
        """Add a record: the old order goes, the new one comes."""
        change = record["dynamodb"]
        for image, sign in ((change.get("OldImage"), -1), (change.get("NewImage"), 1)):
            if image is not None:
                self.by_customer[image["customer"]["S"]] += sign * int(image["amount"]["N"])
        self.checkpoints[shard] = change["SequenceNumber"]
        self.records += 1


class Reader:
    """Follows all shards of a stream, from the checkpoints of whoever read before."""

    def __init__(self, streams: Any, arn: str, totals: Totals) -> None:
        self._streams = streams
        self._arn = arn
        self._totals = totals
        self._iterators: dict[str, str] = {}

    def read(self) -> int:
        """Read on in every shard that may be read; how many records there were."""
        before = self._totals.records
        shards = self._shards()
        for shard in shards:
            name, parent = shard["ShardId"], shard.get("ParentShardId", "")
            parent_done = parent not in {other["ShardId"] for other in shards} or self._is_finished(parent)
            if parent_done and not self._is_finished(name):
                self._read_shard(name)
        return self._totals.records - before

    def _is_finished(self, shard: str) -> bool:
        return self._totals.checkpoints.get(shard) == FINISHED

    def _shards(self) -> list[dict[str, Any]]:
        shards: list[dict[str, Any]] = []
        start: dict[str, str] = {}
        while True:
            page = self._streams.describe_stream(StreamArn=self._arn, **start)["StreamDescription"]
            shards += page["Shards"]
            if "LastEvaluatedShardId" not in page:
                return shards
            start = {"ExclusiveStartShardId": page["LastEvaluatedShardId"]}

    def _read_shard(self, shard: str) -> None:
        answer = self._streams.get_records(ShardIterator=self._iterators.get(shard) or self._begin(shard))
        for record in answer["Records"]:
            self._totals.take(shard, record)
        following = answer.get("NextShardIterator")
        if following is None:
            self._totals.checkpoints[shard] = FINISHED
        else:
            self._iterators[shard] = following

    def _begin(self, shard: str) -> str:
        place: dict[str, str] = {"ShardIteratorType": "TRIM_HORIZON"}
        if (checkpoint := self._totals.checkpoints.get(shard)) is not None:
            place = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": checkpoint}
        answer = self._streams.get_shard_iterator(StreamArn=self._arn, ShardId=shard, **place)
        iterator: str = answer["ShardIterator"]
        return iterator


def create_table(dynamodb: Any) -> tuple[str, str]:
    """A table of orders with a stream; its name, and the stream's ARN."""
    name = f"orders-{uuid.uuid4()}"
    made = dynamodb.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "order", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "order", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    arn: str = made["TableDescription"]["LatestStreamArn"]
    return name, arn


def trade(dynamodb: Any, table: str, seed: int) -> None:
    """Place, change and cancel orders; different writers meet on the same ones."""
    dice = random.Random(seed)
    for _ in range(CHANGES_PER_WRITER):
        key = {"order": {"S": str(dice.randrange(20))}}
        if dice.random() < 0.25:
            dynamodb.delete_item(TableName=table, Key=key)
        else:
            order = {"customer": {"S": dice.choice(CUSTOMERS)}, "amount": {"N": str(dice.randrange(1, 100))}}
            dynamodb.put_item(TableName=table, Item={**key, **order})


def totals_of(dynamodb: Any, table: str) -> Counter[str]:
    """What the table itself says."""
    found: Counter[str] = Counter()
    for page in dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        for order in page["Items"]:
            found[order["customer"]["S"]] += int(order["amount"]["N"])
    return found


def run(endpoint: str, while_it_runs: Callable[[], None] = lambda: None) -> Totals:
    """The whole example; ends the program if the aggregate is wrong. `while_it_runs` is called now and then."""
    dynamodb, streams = connect("dynamodb", endpoint), connect("dynamodbstreams", endpoint)
    table, arn = create_table(dynamodb)
    print(f"{WRITERS} writers, {WRITERS * CHANGES_PER_WRITER} changes, read from {arn}")
    totals = Totals()
    reader, next_change = Reader(streams, arn, totals), RECORDS_PER_READER
    with ThreadPoolExecutor(WRITERS) as writers:
        trading = [writers.submit(trade, dynamodb, table, seed) for seed in range(WRITERS)]
        while not all(writer.done() for writer in trading):
            reader.read()
            while_it_runs()
            if totals.records >= next_change:
                reader = Reader(streams, arn, totals)  # another one goes on from the checkpoints
                next_change += RECORDS_PER_READER
            time.sleep(PAUSE_SECONDS)
        for writer in trading:
            writer.result()
    while reader.read():
        pass
    expected = totals_of(dynamodb, table)
    dynamodb.delete_table(TableName=table)
    for customer in CUSTOMERS:
        print(f"   {customer:8} {totals.by_customer[customer]:6}   in the table {expected[customer]:6}")
    if +totals.by_customer != +expected:
        sys.exit("WRONG: the aggregate is not what the table says")
    print(f"   ok  {totals.records} records, every change once")
    return totals


def main() -> None:
    """Run against the endpoint on the command line."""
    parser = argparse.ArgumentParser(description="Keep an aggregate of a table by its stream.")
    parser.add_argument("endpoint", help="such as http://127.0.0.1:8000")
    run(parser.parse_args().endpoint)


if __name__ == "__main__":
    main()
