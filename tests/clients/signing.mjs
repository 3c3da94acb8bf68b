// The JavaScript SDK's signer on odd requests, in the header and presigned. Argument: the endpoint.
import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import http from 'node:http'
import { SignatureV4 } from '@smithy/signature-v4'

class Sha256 {
  constructor(secret) { this.hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret) }
  update(data) { this.hash.update(data) }
  async digest() { return new Uint8Array(this.hash.digest()) }
}

const endpoint = new URL(process.argv[2])
const signer = new SignatureV4({
  service: 'dynamodb', region: 'us-east-1', sha256: Sha256,
  credentials: { accessKeyId: 'any', secretAccessKey: 'any' },
})

function send(request) {
  const query = Object.entries(request.query ?? {}).flatMap(([name, values]) =>
    [values].flat().map(value => `${escape(name)}=${escape(value)}`)).join('&')
  return new Promise((resolve, reject) => {
    const sent = http.request({
      host: endpoint.hostname, port: endpoint.port, method: request.method, headers: request.headers,
      path: request.path + (query && `?${query}`),
    }, answer => {
      let text = ''
      answer.on('data', part => { text += part })
      answer.on('end', () => resolve({ status: answer.statusCode, text }))
    })
    sent.on('error', reject)
    sent.end(request.body)
  })
}

const escape = text => encodeURIComponent(text).replace(/[!'()*]/g, each => '%' + each.charCodeAt(0).toString(16).toUpperCase())

function request(changes = {}) {
  return {
    method: 'POST', protocol: 'http:', hostname: endpoint.hostname, port: Number(endpoint.port), path: '/', query: {}, body: '{}',
    ...changes,
    headers: {
      host: endpoint.host, 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'DynamoDB_20120810.ListTables',
      ...changes.headers,
    },
  }
}

const odd = [
  {},
  { headers: { 'x-blanks': '  two   blanks  ', 'x-tab': 'a\tb', 'x-empty': '', 'x-comma': 'a, b,c' } },
  { headers: { 'x-latin': 'Größe' } },
  { query: { b: '2', a: ['1', '0'], empty: '', 'ü/ ': "it's (odd) *!" } },
  { path: '/a%20b/c' },
  { body: '{"ExclusiveStartTableName": "größer-東京"}', expected: 400 },
]
for (const { expected = 200, ...changes } of odd) {
  for (const sign of [each => signer.sign(each), each => signer.presign(each, { expiresIn: 60, unhoistableHeaders: new Set(['x-amz-target']) })]) {
    const answer = await send(await sign(request(changes)))
    assert.equal(answer.status, expected, JSON.stringify(changes) + answer.text)
    assert.ok(!answer.text.includes('SignatureException'), answer.text)
  }
}

const spoilt = await signer.sign(request())
const answer = await send({ ...spoilt, body: '{"Limit": 1}' })
assert.ok(answer.text.includes('InvalidSignatureException'), answer.text)
