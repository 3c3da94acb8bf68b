// @aws-sdk/client-dynamodb-streams: lists, describes and reads a stream. Argument: the endpoint.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  CreateTableCommand, DeleteItemCommand, DeleteTableCommand, DynamoDBClient, PutItemCommand, UpdateTableCommand,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb'
import {
  DescribeStreamCommand, DynamoDBStreamsClient, GetRecordsCommand, GetShardIteratorCommand, ListStreamsCommand,
  ResourceNotFoundException,
} from '@aws-sdk/client-dynamodb-streams'

const settings = {
  endpoint: process.argv[2],
  region: 'us-east-1',
  credentials: { accessKeyId: 'any', secretAccessKey: 'any' },
}
const client = new DynamoDBClient(settings)
const streams = new DynamoDBStreamsClient(settings)
const TableName = `streamed-${randomUUID()}`
const COUNT = 30

await client.send(new CreateTableCommand({
  TableName,
  BillingMode: 'PAY_PER_REQUEST',
  AttributeDefinitions: [{ AttributeName: 'p', AttributeType: 'S' }],
  KeySchema: [{ AttributeName: 'p', KeyType: 'HASH' }],
  StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' },
}))
await waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1 }, { TableName })
for (let n = 0; n < COUNT; n++) {
  await client.send(new PutItemCommand({ TableName, Item: { p: { S: String(n % 10) }, n: { N: String(n) } } }))
}
await client.send(new DeleteItemCommand({ TableName, Key: { p: { S: '0' } } }))

const { Streams } = await streams.send(new ListStreamsCommand({ TableName }))
assert.equal(Streams.length, 1)
const [{ StreamArn, StreamLabel }] = Streams
assert.ok(StreamArn.endsWith(`/stream/${StreamLabel}`))

async function describe() {
  const shards = []
  let ExclusiveStartShardId
  do {
    const { StreamDescription } = await streams.send(new DescribeStreamCommand({ StreamArn, ExclusiveStartShardId, Limit: 2 }))
    assert.equal(StreamDescription.StreamViewType, 'NEW_AND_OLD_IMAGES')
    shards.push(...StreamDescription.Shards)
    ExclusiveStartShardId = StreamDescription.LastEvaluatedShardId
  } while (ExclusiveStartShardId !== undefined)
  return shards
}

async function read(position, count) {
  const { ShardIterator } = await streams.send(new GetShardIteratorCommand({ StreamArn, ...position }))
  const records = []
  let next = ShardIterator
  while (next && records.length < count) {
    const { Records, NextShardIterator } = await streams.send(new GetRecordsCommand({ ShardIterator: next, Limit: 7 }))
    if (Records.length === 0) break
    records.push(...Records)
    next = NextShardIterator
  }
  return records
}

const byItem = new Map()
let last
for (const { ShardId } of await describe()) {
  const records = await read({ ShardId, ShardIteratorType: 'TRIM_HORIZON' }, COUNT + 1)
  for (const record of records) {
    const { Keys, NewImage, OldImage, SequenceNumber } = record.dynamodb
    assert.match(SequenceNumber, /^\d{21,40}$/)
    const seen = byItem.get(Keys.p.S) ?? []
    assert.deepEqual(OldImage?.n.N, seen.at(-1)?.n, 'the image before is the one that came last')
    seen.push({ event: record.eventName, n: NewImage?.n.N })
    byItem.set(Keys.p.S, seen)
    last = { ShardId, SequenceNumber }
  }
}
assert.equal(byItem.size, 10)
for (const [key, seen] of byItem) {
  const puts = [0, 10, 20].map((more, at) => ({ event: at ? 'MODIFY' : 'INSERT', n: String(Number(key) + more) }))
  assert.deepEqual(seen, key === '0' ? [...puts, { event: 'REMOVE', n: undefined }] : puts)
}

const again = await read({ ...last, ShardIteratorType: 'AT_SEQUENCE_NUMBER' }, 1)
assert.equal(again[0].dynamodb.SequenceNumber, last.SequenceNumber)
assert.deepEqual(await read({ ...last, ShardIteratorType: 'AFTER_SEQUENCE_NUMBER' }, 1), [])

await client.send(new UpdateTableCommand({ TableName, StreamSpecification: { StreamEnabled: false } }))
for (let tries = 0; (await describe()).some((shard) => !shard.SequenceNumberRange.EndingSequenceNumber); tries++) {
  assert.ok(tries < 100, 'the shards of a stream that was ended are closed')
  await new Promise((done) => setTimeout(done, 100))
}
await assert.rejects(
  streams.send(new DescribeStreamCommand({ StreamArn: StreamArn.replace(TableName, 'no-such-table') })),
  ResourceNotFoundException,
)
await client.send(new DeleteTableCommand({ TableName }))
