import type { ConfigStore } from '../config/config.ts'
import type { AgentLimits, Config, Limits, ScopedServer } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import { type Principal, type PrincipalKey, toPrincipalKey } from '../contract/principal.ts'
import type { ServerDefinition, SharedLimits } from '../contract/server.ts'
import type { Clock } from '../lib/clock.ts'
import type { Account } from '../lib/delivery.ts'
import { count, createMeter, isIdle, type Meter, waitForRate } from '../lib/meter.ts'
import { createQuietMap, type QuietMap } from '../lib/quiet-map.ts'
import { countOf } from '../shared/words.ts'

/** Limits of calls; undefined means no limit. */
type Bounds = { readonly callsPerMinute?: number | undefined; readonly concurrent?: number | undefined }

/** The counters that include a call until its answer has been delivered. */
export type Place = {
  readonly principal: Meter
  /** Key of the meter for the bytes of the owner. */
  readonly owner: string
  readonly server?: Meter | undefined
  readonly tool?: Meter | undefined
  /** Bytes of the answer; 0 before there is an answer. */
  bytes: number
}

/** The principal and the target of a call, which limits apply to. */
export type Bounded = {
  readonly principal: PrincipalKey
  readonly server: string
  readonly connection: string
  readonly original: string
}

export type CallLimits = {
  /** Takes a place for a call, or returns an error. Synchronous, so that two calls cannot both take the last place. */
  enter(principal: Principal, call: Bounded): Place | GatewayError
  /** Must be called once for each place, also if the call failed. */
  leave(place: Place): void
  /** Counts the bytes of the answer until the call leaves its place. False if they exceed the limit. */
  buffer(place: Place, bytes: number): boolean
  /** The account of buffered bytes of a principal, for surfaces. */
  accountOf(principal: Principal): Account
  /** The most approvals of one principal that may wait. */
  mostPending(principal: Principal): number
}

type Parts = { readonly config: Pick<ConfigStore, 'current' | 'effective'>; readonly clock: Pick<Clock, 'monotonic'> }

/**
 * The meter of a principal with its limits, which are read again when the configuration has changed. `owner` is the key of
 * the meter for the bytes of all agents and sessions of one user.
 */
type Known = { readonly meter: Meter; readonly owner: string; config: Config; bounds: Bounds }

/** All agents and sessions of one user together may buffer this many times `limits.buffered`. */
const ownerShare = 4

export function createLimits({ config, clock }: Parts): CallLimits {
  const principals = createQuietMap<Known>(({ meter }, now) => isIdle(meter, now))
  const owners = createQuietMap<Meter>(isIdle)
  const servers = createQuietMap<Meter>(isIdle)
  const tools = createQuietMap<Meter>(isIdle)
  let checked: Config | undefined
  let sharing = false

  /** Most configurations limit no server or tool. Then the lookup is skipped, because it runs for every call. */
  function boundsServers(current: Config): boolean {
    if (current !== checked) {
      sharing = hasSharedLimits(current)
      checked = current
    }
    return sharing
  }

  function buffersOf({ meter, owner }: Pick<Known, 'meter' | 'owner'>): Buffers {
    return { meter, owner: meterOf(owners, owner, clock.monotonic()) }
  }

  function knownOf(principal: Principal, key: PrincipalKey, current: Config, now: number): Known {
    const known = principals.find(key)
    if (known?.config === current) return known
    const bounds = boundsOf(current, principal)
    if (known) return Object.assign(known, { config: current, bounds })
    const owner = principal.owner === undefined ? key : `user:${principal.owner}`
    return principals.add(key, { meter: createMeter(), owner, config: current, bounds }, now)
  }

  /** Also checks the meters of the server and the tool, if they have limits. */
  function enterShared(principal: Principal, call: Bounded, known: Known, now: number): Place | GatewayError {
    const { definition } = config.effective(principal).servers.get(call.server) ?? {}
    const first = call.connection === call.server ? own(config.current().servers, call.server) : undefined
    const ofServer = tighter(definition?.limits, first?.limits)
    const ofTool = tighter(overrideOf(definition, call.original), overrideOf(first, call.original))
    const server = ofServer && meterOf(servers, call.connection, now)
    const tool = ofTool && meterOf(tools, `${call.connection}\n${call.original}`, now)
    const { meter, owner } = known
    const refusal =
      checkOwn(known, buffersOf(known), { now, who: call.principal }) ??
      (server && check(server, ofServer, now, `The server ${call.server}`)) ??
      (tool && check(tool, ofTool, now, `The tool ${call.original} of ${call.server}`))
    if (refusal) return refusal
    count(meter, now)
    if (server) count(server, now)
    if (tool) count(tool, now)
    return { principal: meter, owner, server, tool, bytes: 0 }
  }

  return {
    enter(principal, call) {
      const current = config.current()
      const now = clock.monotonic()
      const known = knownOf(principal, call.principal, current, now)
      if (boundsServers(current)) return enterShared(principal, call, known, now)
      const refusal = checkOwn(known, buffersOf(known), { now, who: call.principal })
      if (refusal) return refusal
      count(known.meter, now)
      return { principal: known.meter, owner: known.owner, bytes: 0 }
    },
    buffer(place, bytes) {
      const buffers = buffersOf({ meter: place.principal, owner: place.owner })
      const room = hasRoom(buffers, bytes, config.current())
      if (room) place.bytes += bytes
      if (room) addTo(buffers, bytes, config.current())
      else place.principal.full = true
      return room
    },
    accountOf(principal) {
      const key = toPrincipalKey(principal)
      const known = () => knownOf(principal, key, config.current(), clock.monotonic())
      return {
        buffered: () => known().meter.buffered,
        hasRoom: (bytes) => hasRoom(buffersOf(known()), bytes, config.current()),
        add(bytes) {
          if (bytes !== 0) addTo(buffersOf(known()), bytes, config.current())
        },
      }
    },
    leave(place) {
      place.principal.running--
      if (place.bytes > 0)
        addTo(buffersOf({ meter: place.principal, owner: place.owner }), -place.bytes, config.current())
      if (place.server) place.server.running--
      if (place.tool) place.tool.running--
    },
    mostPending: (principal) => limitsOf(config.current(), principal)?.pending ?? config.current().limits.pending,
  }
}

/** The meters of a principal and of its owner. */
type Buffers = { readonly meter: Meter; readonly owner: Meter }

function hasRoom({ meter, owner }: Buffers, bytes: number, { limits }: Config): boolean {
  const fits = ({ buffered }: Meter, most: number) => {
    // If little is buffered, one message of any size is allowed. Several messages together must fit.
    const little = Math.min(limits.request, most / 8)
    return buffered <= little || buffered + bytes <= most
  }
  return fits(meter, limits.buffered) && fits(owner, ownerShare * limits.buffered)
}

/** After an answer was dropped, further calls are refused until the buffered bytes are at most half of the limit. */
function addTo({ meter, owner }: Buffers, bytes: number, { limits }: Config): void {
  meter.buffered += bytes
  owner.buffered += bytes
  if (meter.full && meter.buffered <= limits.buffered / 2) meter.full = false
}

/** Checks the limits of the principal. Its clients must read their answers before it can make more calls. */
function checkOwn(
  { bounds, config }: Known,
  { meter, owner }: Buffers,
  { now, who }: { now: number; who: string },
): GatewayError | undefined {
  const most = config.limits.buffered
  if (meter.full || meter.buffered >= most) {
    const message = `${who} has ${meter.buffered} bytes buffered in requests and unread answers; the limit is ${most}. Read the answers, then try again`
    return exceeded(message, { limit: 'buffered', most }, retryMs)
  }
  if (owner.buffered >= ownerShare * most) {
    const message = `All agents and sessions of one user, including ${who}, have ${owner.buffered} bytes buffered; the limit is ${ownerShare * most}. Read their answers, then try again`
    return exceeded(message, { limit: 'buffered', most: ownerShare * most }, retryMs)
  }
  return check(meter, bounds, now, who)
}

function meterOf(meters: QuietMap<Meter>, key: string, now: number): Meter {
  return meters.find(key) ?? meters.add(key, createMeter(), now)
}

/** Whether any scope of the configuration limits a server or a tool. */
function hasSharedLimits({ servers, projects, agents, users }: Config): boolean {
  const scopes = [...Object.values(projects), ...Object.values(agents), ...Object.values(users)]
  const later = scopes.map((scope) => scope.servers)
  return [servers, ...later].some((stated) => Object.values(stated).some(isLimited))
}

function isLimited({ limits, tools }: ScopedServer | ServerDefinition): boolean {
  return limits !== undefined || Object.values(tools?.override ?? {}).some((change) => change.limits !== undefined)
}

function boundsOf(config: Config, principal: Principal): Bounds {
  const { callsPerMinute, concurrent }: Limits = config.limits
  const stated = limitsOf(config, principal)
  return {
    callsPerMinute: stated?.callsPerMinute ?? callsPerMinute,
    concurrent: stated?.concurrent ?? concurrent,
  }
}

function limitsOf(config: Config, { kind, name }: Principal): AgentLimits | undefined {
  return kind === 'agent' ? own(config.agents, name)?.limits : undefined
}

type Limited = { readonly tools: { readonly override: Readonly<Record<string, { limits?: SharedLimits }>> } }

function overrideOf(definition: Limited | undefined, original: string): SharedLimits | undefined {
  return definition && own(definition.tools.override, original)?.limits
}

/** A later scope that uses the connection of the global server can only make its limits stricter. */
function tighter(a: SharedLimits | undefined, b: SharedLimits | undefined): Bounds | undefined {
  if (!a || !b) return a ?? b
  return {
    callsPerMinute: smaller(a.callsPerMinute, b.callsPerMinute),
    concurrent: smaller(a.concurrent, b.concurrent),
  }
}

function smaller(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b)
}

/** `hasOwn`, because `constructor` is a valid name of an agent. */
function own<Value>(record: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

/** It is not known when a running call ends, so clients are told to retry after this time. */
const retryMs = 1000

function check(meter: Meter, bounds: Bounds, now: number, who: string): GatewayError | undefined {
  const { concurrent, callsPerMinute } = bounds
  if (concurrent !== undefined && meter.running >= concurrent) {
    const message = `${who} has ${countOf(concurrent, 'running call')}, which is the limit; try again when one has ended`
    return exceeded(message, { limit: 'concurrent', most: concurrent }, retryMs)
  }
  const wait = waitForRate(meter, callsPerMinute, now)
  if (callsPerMinute === undefined || wait === 0) return undefined
  const message = `${who} had ${countOf(callsPerMinute, 'call')} within a minute, which is the limit; try again in ${Math.ceil(wait / 1000)} s`
  return exceeded(message, { limit: 'callsPerMinute', most: callsPerMinute }, wait)
}

/** `retryAfter` is in whole seconds, for the HTTP header Retry-After. `retryAfterMs` is exact. */
function exceeded(message: string, facts: { limit: string; most: number }, wait: number): GatewayError {
  const retryAfterMs = Math.ceil(wait)
  return new GatewayError('limit-exceeded', message, {
    ...facts,
    retryAfter: Math.ceil(retryAfterMs / 1000),
    retryAfterMs,
  })
}
