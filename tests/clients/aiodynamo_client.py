"""aiodynamo, which signs and speaks HTTP by itself. Arguments: the endpoint."""

# mypy: ignore-errors
import asyncio
import sys
import uuid

import aiohttp
from aiodynamo.client import Client
from aiodynamo.credentials import Key, StaticCredentials
from aiodynamo.errors import ItemNotFound
from aiodynamo.expressions import F, HashKey, RangeKey
from aiodynamo.http.aiohttp import AIOHTTP
from aiodynamo.models import KeySchema, KeySpec, KeyType, PayPerRequest
from yarl import URL


async def main() -> None:
    """Items, an update, a query in pages."""
    async with aiohttp.ClientSession() as session:
        client = Client(AIOHTTP(session), StaticCredentials(Key("any", "any")), "us-east-1", URL(sys.argv[1]))
        table = client.table(f"aiodynamo-{uuid.uuid4().hex}")
        keys = KeySchema(KeySpec("p", KeyType.string), KeySpec("c", KeyType.number))
        await table.create(PayPerRequest(), keys, wait_for_active=True)
        assert await table.exists()
        for number in range(12):
            await table.put_item({"p": "x", "c": number, "s": {"a"}, "m": {"deep": [1, None]}})
        assert (await table.get_item({"p": "x", "c": 3}))["m"] == {"deep": [1, None]}
        await table.update_item({"p": "x", "c": 3}, F("n").set(5) & F("m", "deep", 0).set("changed"))
        assert (await table.get_item({"p": "x", "c": 3}))["m"] == {"deep": ["changed", None]}
        condition = HashKey("p", "x") & RangeKey("c").gte(9)
        found = [item["c"] async for item in table.query(condition, limit=10)]
        assert found == [9, 10, 11], found
        assert await table.count(HashKey("p", "x")) == 12
        assert len([item async for item in table.scan()]) == 12
        await table.delete_item({"p": "x", "c": 3})
        try:
            await table.get_item({"p": "x", "c": 3})
        except ItemNotFound:
            pass
        else:
            raise AssertionError("a deleted item was found")
        await table.delete()


asyncio.run(main())
