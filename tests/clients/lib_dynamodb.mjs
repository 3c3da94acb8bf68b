// @aws-sdk/lib-dynamodb, the document client of the JavaScript SDK. Argument: the endpoint.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  ConditionalCheckFailedException, CreateTableCommand, DeleteTableCommand, DynamoDBClient, waitUntilTableExists,
} from '@aws-sdk/client-dynamodb'
import {
  BatchWriteCommand, DeleteCommand, DynamoDBDocumentClient, GetCommand, PutCommand, TransactWriteCommand, UpdateCommand,
  paginateQuery, paginateScan,
} from '@aws-sdk/lib-dynamodb'

const client = new DynamoDBClient({
  endpoint: process.argv[2],
  region: 'us-east-1',
  credentials: { accessKeyId: 'any', secretAccessKey: 'any' },
})
const documents = DynamoDBDocumentClient.from(client)
const TableName = `document-${randomUUID()}`

await client.send(new CreateTableCommand({
  TableName,
  BillingMode: 'PAY_PER_REQUEST',
  AttributeDefinitions: [
    { AttributeName: 'p', AttributeType: 'S' }, { AttributeName: 'c', AttributeType: 'N' },
    { AttributeName: 'g', AttributeType: 'S' },
  ],
  KeySchema: [{ AttributeName: 'p', KeyType: 'HASH' }, { AttributeName: 'c', KeyType: 'RANGE' }],
  GlobalSecondaryIndexes: [
    { IndexName: 'byG', KeySchema: [{ AttributeName: 'g', KeyType: 'HASH' }], Projection: { ProjectionType: 'ALL' } },
  ],
}))
await waitUntilTableExists({ client, maxWaitTime: 60 }, { TableName })

const item = { p: 'x', c: 1, list: [1, 'two', null, true, { deep: [2.5] }], set: new Set(['a', 'b']), bytes: new Uint8Array([0, 255]) }
await documents.send(new PutCommand({ TableName, Item: item }))
const found = await documents.send(new GetCommand({ TableName, Key: { p: 'x', c: 1 }, ConsistentRead: true }))
assert.deepEqual(found.Item, item)

await assert.rejects(
  documents.send(new PutCommand({ TableName, Item: item, ConditionExpression: 'attribute_not_exists(p)' })),
  ConditionalCheckFailedException,
)
const changed = await documents.send(new UpdateCommand({
  TableName,
  Key: { p: 'x', c: 1 },
  UpdateExpression: 'SET #l[4].deep[0] = :v REMOVE bytes',
  ExpressionAttributeNames: { '#l': 'list' },
  ExpressionAttributeValues: { ':v': -7 },
  ReturnValues: 'ALL_NEW',
}))
assert.deepEqual(changed.Attributes.list[4], { deep: [-7] })
assert.equal('bytes' in changed.Attributes, false)

await documents.send(new BatchWriteCommand({
  RequestItems: { [TableName]: Array.from({ length: 20 }, (_, c) => ({ PutRequest: { Item: { p: 'y', c, g: 'one' } } })) },
}))
const sorted = []
for await (const page of paginateQuery({ client: documents, pageSize: 6 }, {
  TableName, KeyConditionExpression: 'p = :p', ExpressionAttributeValues: { ':p': 'y' }, ScanIndexForward: false,
})) sorted.push(...page.Items.map(({ c }) => c))
assert.deepEqual(sorted, Array.from({ length: 20 }, (_, n) => 19 - n))

let count = 0
for await (const page of paginateScan({ client: documents, pageSize: 4 }, { TableName, ConsistentRead: true })) count += page.Count
assert.equal(count, 21)

await documents.send(new TransactWriteCommand({
  TransactItems: [
    { Put: { TableName, Item: { p: 'z', c: 0 } } },
    { ConditionCheck: { TableName, Key: { p: 'y', c: 3 }, ConditionExpression: 'attribute_exists(p)' } },
  ],
}))
await documents.send(new DeleteCommand({ TableName, Key: { p: 'z', c: 0 } }))
const gone = await documents.send(new GetCommand({ TableName, Key: { p: 'z', c: 0 }, ConsistentRead: true }))
assert.equal(gone.Item, undefined)
await client.send(new DeleteTableCommand({ TableName }))
