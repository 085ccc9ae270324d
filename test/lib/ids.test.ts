import { expect, it } from 'vitest'
import { createIds, toIdFloor } from '../../src/lib/ids.ts'

it('makes ids that sort in the order in which they were made, also many in one millisecond', () => {
  const ids = createIds(() => 1_700_000_000_000)
  const made = Array.from({ length: 5000 }, () => ids.next('call'))
  expect(made.toSorted()).toEqual(made)
  expect(new Set(made).size).toBe(made.length)
})

it('makes ids whose order is that of the clock, with a floor for each time', () => {
  let now = 1_700_000_000_000
  const ids = createIds(() => now)
  const first = ids.next('call')
  now += 1
  const second = ids.next('call')
  expect(first < second).toBe(true)
  expect([first, toIdFloor('call', now), second].toSorted()).toEqual([first, toIdFloor('call', now), second])
})

it('begins at a random place in each millisecond, so that two processes do not make the same ids', () => {
  const make = () => createIds(() => 1_700_000_000_000).next('call')
  expect(new Set(Array.from({ length: 200 }, make)).size).toBe(200)
})
