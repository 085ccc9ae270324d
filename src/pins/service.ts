import { type ConfigStore, mayChangeServer, type Place, seesDefinition } from '../config/config.ts'
import { ScopeText } from '../contract/api/base.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Pin, PinDecision, PinDetail, PinState } from '../contract/pin.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import { toScope } from '../contract/scope.ts'
import { toVisible } from '../shared/visible.ts'
import type { PinAuthor, Pins } from './pins.ts'

export type PinQuery = { readonly server?: string; readonly scope?: string; readonly state?: readonly PinState[] }

/** The operations on pins. Principals see and decide only on pins of servers that they may change. */
export type PinService = {
  list(principal: Principal, query: PinQuery): Pin[]
  get(principal: Principal, id: string): PinDetail
  accept(principal: Principal, decisions: readonly PinDecision[]): Promise<PinDetail[]>
  block(principal: Principal, decision: PinDecision): Promise<PinDetail>
}

/** A pin with the decision that a person has just made. */
export type DecidedPin = Pick<Pin, 'server' | 'scope' | 'name'> & {
  readonly decision: 'accepted' | 'blocked'
  /** The name of the person. */
  readonly by: string
}

/** Withdraws open approvals that a decision on pins makes obsolete. The error tells callers to repeat the call. */
export type PinReview = (decided: readonly DecidedPin[]) => Promise<void>

type PinServiceParts = {
  /** A lookup of public names of tools. */
  publicNames(): (pin: Pick<Pin, 'server' | 'scope' | 'name'>) => string | undefined
  readonly pins: Pins
  readonly config: ConfigStore
  /** Withdraws approvals that a decision makes obsolete. */
  readonly review: PinReview
}

export function createPinService({ pins, config, review, publicNames }: PinServiceParts): PinService {
  return {
    list(principal, query) {
      const toPublic = withPublicName()
      return pins
        .list()
        .filter((pin) => matches(pin, query) && maySee(principal, pin))
        .map(toPublic)
    },
    get,
    async accept(principal, decisions) {
      const known = new Map(pins.list().map((pin) => [pin.id, pin]))
      for (const { id } of decisions) check(principal, id, known.get(id))
      const accepted = await pins.accept(decisions, toAuthor(principal))
      await review(toDecided(accepted, 'accepted', principal))
      return accepted
    },
    async block(principal, decision) {
      check(principal, decision.id, pins.get(decision.id))
      const blocked = await pins.block(decision, toAuthor(principal))
      await review(toDecided([blocked], 'blocked', principal))
      return blocked
    },
  }

  function get(principal: Principal, id: string): PinDetail {
    const pin = pins.get(id)
    if (maySee(principal, pin)) return withPublicName()(pin)
    throw notFound(id)
  }

  /** Adds the public names of tools to pins. */
  function withPublicName(): <Some extends Pin>(pin: Some) => Some {
    const find = publicNames()
    return (pin) => {
      const tool = pin.kind === 'tool' ? find(pin) : undefined
      return tool === undefined ? pin : { ...pin, tool }
    }
  }

  /** Throws `pin-not-found` for pins that the principal may not see, so that their existence stays unknown. */
  function check(principal: Principal, id: string, pin: Pin | undefined): void {
    if (!pin || !maySee(principal, pin)) throw notFound(id)
    if (mayDecide(principal, pin)) return
    throw new GatewayError(
      'forbidden',
      `${principal.kind} ${principal.name} may not accept or block definitions of ${pin.server}`,
    )
  }

  function maySee(principal: Principal, pin: Pin): boolean {
    return seesDefinition(principal, toPlace(pin), config.current())
  }

  /** Deciding on pins needs the same right as reconnecting the server. */
  function mayDecide(principal: Principal, pin: Pin): boolean {
    return mayChangeServer(principal, { action: 'reconnect', ...toPlace(pin) }, config.current()).may
  }

  function toPlace(pin: Pin): Place {
    const scope = toScope(ScopeText.parse(pin.scope))
    return { scope, owner: config.ownerOf(scope) }
  }
}

function toDecided(pins: readonly Pin[], decision: DecidedPin['decision'], { name: by }: Principal): DecidedPin[] {
  const tools = pins.filter(({ kind }) => kind === 'tool')
  return tools.map(({ server, scope, name }) => ({ server, scope, name, decision, by }))
}

function toAuthor(principal: Principal): PinAuthor {
  return { key: toPrincipalKey(principal), isAdministrator: principal.role === 'administrator' }
}

function notFound(id: string): GatewayError {
  return new GatewayError('pin-not-found', `No pin has the id ${toVisible(id.slice(0, 64))}`)
}

function matches(pin: Pin, { server, scope, state }: PinQuery): boolean {
  if (server !== undefined && pin.server !== server) return false
  if (scope !== undefined && pin.scope !== scope) return false
  return state === undefined || state.includes(pin.state)
}
