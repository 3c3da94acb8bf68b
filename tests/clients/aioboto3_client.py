"""aioboto3: many requests at once on one loop. Arguments: the endpoint."""

# mypy: ignore-errors
import asyncio
import sys
import uuid

import aioboto3
from boto3.dynamodb.conditions import Key


async def main() -> None:
    """A counter that 20 tasks raise, and a query over what they left."""
    session = aioboto3.Session(aws_access_key_id="any", aws_secret_access_key="any", region_name="us-east-1")
    async with session.resource("dynamodb", endpoint_url=sys.argv[1]) as dynamodb:
        table = await dynamodb.create_table(
            TableName=f"aio-{uuid.uuid4().hex}",
            AttributeDefinitions=[
                {"AttributeName": "p", "AttributeType": "S"},
                {"AttributeName": "c", "AttributeType": "N"},
            ],
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "c", "KeyType": "RANGE"}],
            BillingMode="PAY_PER_REQUEST",
        )
        await table.wait_until_exists()

        async def work(number: int) -> None:
            await table.put_item(Item={"p": "x", "c": number})
            for _ in range(5):
                await table.update_item(
                    Key={"p": "counter", "c": 0},
                    UpdateExpression="ADD n :one",
                    ExpressionAttributeValues={":one": 1},
                )

        await asyncio.gather(*(work(number) for number in range(20)))
        counter = await table.get_item(Key={"p": "counter", "c": 0}, ConsistentRead=True)
        assert counter["Item"]["n"] == 100
        found = await table.query(KeyConditionExpression=Key("p").eq("x") & Key("c").between(5, 9), ConsistentRead=True)
        assert [int(item["c"]) for item in found["Items"]] == [5, 6, 7, 8, 9]
        await table.delete()


asyncio.run(main())
