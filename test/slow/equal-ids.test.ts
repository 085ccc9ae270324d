import { expect, it } from 'vitest'
import { askThroughGateway } from '../scenarios/mcp/equal-ids.ts'

it('gives each of four clients its own answers over 10,000 calls with equal ids, slow and fast ones mixed', async () => {
  expect(await askThroughGateway(2500)).toEqual({ asked: 10_000, wrong: [] })
})
