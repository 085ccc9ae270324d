import type { Principal } from '../../../src/contract/principal.ts'

export const ada: Principal = { kind: 'user', name: 'ada', role: 'administrator', person: true }
/** The key of all gateways of these tests, as `SALLYPORT_KEY`. */
export const key = Buffer.alloc(32, 7).toString('base64')
/** Nobody starts it: a change of the configuration and nothing else. */
export const spare = { transport: 'stdio', command: 'false', enabled: false } as const
