import { describe, expect, it } from 'vitest'
import { toEnd } from '../../src/calls/end.ts'
import type { CallEndState } from '../../src/contract/call.ts'
import { type ErrorCode, GatewayError, type Reach } from '../../src/contract/errors.ts'
import type { Risk } from '../../src/contract/risk.ts'
import { callOf } from '../storage/support.ts'

function stateOf(risk: Risk, code: ErrorCode, reach: Reach | undefined, stopping = false): CallEndState {
  return toEnd(callOf(risk), new GatewayError(code, 'It broke', {}, { reach }), stopping).state
}

describe('a call that got no answer', () => {
  it.each<[what: string, ErrorCode, Reach | undefined, read: CallEndState, write: CallEndState]>([
    ['waited too long', 'call-timeout', 'sent', 'timeout', 'unknown'],
    ['waited too long, and nobody knows whether it was sent', 'call-timeout', undefined, 'timeout', 'unknown'],
    ['waited too long to be sent', 'call-timeout', 'unsent', 'timeout', 'timeout'],
    ['was taken back', 'call-cancelled', 'sent', 'cancelled', 'cancelled'],
    ['was taken back before it was sent', 'call-cancelled', 'unsent', 'cancelled', 'cancelled'],
    ['met a server that ended', 'server-broken', 'sent', 'failed', 'unknown'],
    ['met a server that does not read', 'server-broken', 'unsent', 'failed', 'failed'],
    ['met a link that broke at an unknown moment', 'server-broken', undefined, 'failed', 'unknown'],
    ['found nobody', 'connect-failed', 'unsent', 'failed', 'failed'],
    ['found a server that is not connected', 'server-unavailable', 'unsent', 'failed', 'failed'],
    ['lost the connection that carried it', 'server-unavailable', 'sent', 'failed', 'unknown'],
    ['was refused by a missing server', 'server-not-found', 'unsent', 'failed', 'failed'],
    ['was refused for its credentials', 'server-auth', 'refused', 'failed', 'failed'],
    ['was refused for a lost session', 'session-lost', 'refused', 'failed', 'failed'],
    ['was refused as one too many', 'limit-exceeded', 'refused', 'failed', 'failed'],
    ['was refused as wrong', 'connect-failed', 'refused', 'failed', 'failed'],
    ['met an error in the server', 'server-failed', 'sent', 'failed', 'unknown'],
    ['met a gateway that lost the server', 'server-failed', 'sent', 'failed', 'unknown'],
    ['was sent on elsewhere', 'connect-failed', 'sent', 'failed', 'unknown'],
    ['was answered with a web page', 'server-broken', 'sent', 'failed', 'unknown'],
    ['was answered with too much', 'result-too-large', 'sent', 'failed', 'unknown'],
    ['met a defect of ours', 'internal', undefined, 'failed', 'unknown'],
    ['was not let out', 'egress-denied', 'unsent', 'failed', 'failed'],
  ])('because it %s: %s %j', (_, code, reach, read, write) => {
    expect(stateOf('read', code, reach)).toBe(read)
    expect(stateOf('write', code, reach)).toBe(write)
    expect(stateOf('danger', code, reach)).toBe(write)
  })

  it.each<[what: string, ErrorCode, Reach | undefined, read: CallEndState, write: CallEndState]>([
    ['ended by it after it was sent', 'shutting-down', 'sent', 'cancelled', 'unknown'],
    ['ended by it before it was sent', 'shutting-down', 'unsent', 'cancelled', 'cancelled'],
    ['taken back by its caller at that time', 'call-cancelled', 'sent', 'cancelled', 'cancelled'],
    ['at its end anyway', 'call-timeout', 'sent', 'timeout', 'unknown'],
    ['at its end anyway, before it was sent', 'call-timeout', 'unsent', 'timeout', 'timeout'],
    ['cut with its server', 'server-broken', 'sent', 'cancelled', 'unknown'],
    ['without a server', 'server-unavailable', 'unsent', 'cancelled', 'cancelled'],
  ])('because the gateway stops, %s', (_, code, reach, read, write) => {
    expect(stateOf('read', code, reach, true)).toBe(read)
    expect(stateOf('write', code, reach, true)).toBe(write)
  })
})

it('tells that nobody knows, and what happened before', () => {
  const { error } = toEnd(
    callOf('write'),
    new GatewayError('server-broken', 'The program ended', {}, { reach: 'sent' }),
    false,
  )
  expect(error).toMatchObject({ code: 'call-unknown', details: { was: 'server-broken' } })
  expect(error.message).toBe('The program ended; whether the call took effect is not known')
})

it('tells that the gateway stopped, where that is why', () => {
  const { error } = toEnd(
    callOf('read'),
    new GatewayError('server-broken', 'The program ended', {}, { reach: 'sent' }),
    true,
  )
  expect(error.code).toBe('shutting-down')
})
