import { describe, expect, it } from 'vitest'
import { toEnd } from '../../src/calls/end.ts'
import type { CallEndState } from '../../src/contract/call.ts'
import { type ErrorCode, GatewayError } from '../../src/contract/errors.ts'
import type { Risk } from '../../src/contract/risk.ts'
import { callOf } from '../storage/support.ts'

type Details = Record<string, unknown>

function stateOf(risk: Risk, code: ErrorCode, details: Details, stopping = false): CallEndState {
  return toEnd(callOf(risk), new GatewayError(code, 'It broke', details), stopping).state
}

describe('a call that got no answer', () => {
  it.each<[what: string, ErrorCode, Details, read: CallEndState, write: CallEndState]>([
    ['waited too long', 'call-timeout', { sent: true }, 'timeout', 'unknown'],
    ['waited too long, and nobody knows whether it was sent', 'call-timeout', {}, 'timeout', 'unknown'],
    ['waited too long to be sent', 'call-timeout', { sent: false }, 'timeout', 'timeout'],
    ['was taken back', 'call-cancelled', { sent: true }, 'cancelled', 'cancelled'],
    ['was taken back before it was sent', 'call-cancelled', { sent: false }, 'cancelled', 'cancelled'],
    ['met a server that ended', 'server-broken', { sent: true, exitCode: 1 }, 'failed', 'unknown'],
    ['met a server that does not read', 'server-broken', { sent: false }, 'failed', 'failed'],
    ['met a link that broke at an unknown moment', 'server-broken', {}, 'failed', 'unknown'],
    ['found nobody', 'connect-failed', { sent: false, errno: 'ECONNREFUSED' }, 'failed', 'failed'],
    ['found a server that is not connected', 'server-unavailable', { sent: false }, 'failed', 'failed'],
    ['lost the connection that carried it', 'server-unavailable', { sent: true }, 'failed', 'unknown'],
    ['was refused by a missing server', 'server-not-found', { sent: false }, 'failed', 'failed'],
    ['was refused for its credentials', 'server-auth', { sent: true, status: 401 }, 'failed', 'failed'],
    ['was refused for a lost session', 'session-lost', { sent: true, status: 404 }, 'failed', 'failed'],
    ['was refused as one too many', 'limit-exceeded', { sent: true, status: 503, rejected: true }, 'failed', 'failed'],
    ['was refused as wrong', 'connect-failed', { sent: true, status: 400 }, 'failed', 'failed'],
    ['met an error in the server', 'server-failed', { sent: true, status: 500 }, 'failed', 'unknown'],
    ['met a gateway that lost the server', 'server-failed', { sent: true, status: 504 }, 'failed', 'unknown'],
    ['was sent on elsewhere', 'connect-failed', { sent: true, status: 303 }, 'failed', 'unknown'],
    ['was answered with a web page', 'server-broken', { sent: true, status: 200 }, 'failed', 'unknown'],
    ['was answered with too much', 'result-too-large', { sent: true }, 'failed', 'unknown'],
    ['met a defect of ours', 'internal', {}, 'failed', 'unknown'],
    ['was not let out', 'egress-denied', { sent: false }, 'failed', 'failed'],
  ])('because it %s: %s %j', (_, code, details, read, write) => {
    expect(stateOf('read', code, details)).toBe(read)
    expect(stateOf('write', code, details)).toBe(write)
    expect(stateOf('danger', code, details)).toBe(write)
  })

  it.each<[what: string, ErrorCode, Details, read: CallEndState, write: CallEndState]>([
    ['ended by it after it was sent', 'shutting-down', { sent: true }, 'cancelled', 'unknown'],
    ['ended by it before it was sent', 'shutting-down', { sent: false }, 'cancelled', 'cancelled'],
    ['taken back by its caller at that time', 'call-cancelled', { sent: true }, 'cancelled', 'cancelled'],
    ['at its end anyway', 'call-timeout', { sent: true }, 'timeout', 'unknown'],
    ['at its end anyway, before it was sent', 'call-timeout', { sent: false }, 'timeout', 'timeout'],
    ['cut with its server', 'server-broken', { sent: true }, 'cancelled', 'unknown'],
    ['without a server', 'server-unavailable', { sent: false }, 'cancelled', 'cancelled'],
  ])('because the gateway stops, %s', (_, code, details, read, write) => {
    expect(stateOf('read', code, details, true)).toBe(read)
    expect(stateOf('write', code, details, true)).toBe(write)
  })
})

it('tells that nobody knows, and what happened before', () => {
  const { error } = toEnd(
    callOf('write'),
    new GatewayError('server-broken', 'The program ended', { sent: true }),
    false,
  )
  expect(error).toMatchObject({ code: 'call-unknown', details: { sent: true, was: 'server-broken' } })
  expect(error.message).toBe('The program ended; whether the call took effect is not known')
})

it('tells that the gateway stopped, where that is why', () => {
  const { error } = toEnd(callOf('read'), new GatewayError('server-broken', 'The program ended', { sent: true }), true)
  expect(error.code).toBe('shutting-down')
})
