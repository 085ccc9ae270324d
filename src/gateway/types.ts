import type { Audit } from '../audit/audit.ts'
import type { CallOptions, CallOutcome, CallRequest } from '../calls/calls.ts'
import type { Catalog, ViewSelector } from '../catalog/catalog.ts'
import type { ConfigStore } from '../config/config.ts'
import type { EffectiveServer as ShownServer } from '../contract/api/config.ts'
import type { Replay, RuleScope, RuleTest } from '../contract/api/rules.ts'
import type { ToolRisk } from '../contract/api/servers.ts'
import type { Call } from '../contract/call.ts'
import type { ScopedServer } from '../contract/config.ts'
import type { EventTable } from '../contract/events.ts'
import type { Principal } from '../contract/principal.ts'
import type { Risk } from '../contract/risk.ts'
import type { Rule } from '../contract/rule.ts'
import type { ScopeKey } from '../contract/scope.ts'
import type { Server, ServerDefinition, ServerDetail, Validation } from '../contract/server.ts'
import type { Status } from '../contract/status.ts'
import type { Tool } from '../contract/tool.ts'
import type { Identity } from '../identity/identity.ts'
import type { Clock } from '../lib/clock.ts'
import type { Account } from '../lib/delivery.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Masking } from '../masking/masking.ts'
import type { Notify } from '../notify/notify.ts'
import type { Removal } from '../removal/removal.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { KeptLogs } from '../servers/servers.ts'
import type { Storage } from '../storage/storage.ts'
import type { ApprovalDesk, GrantDesk } from './approval-desk.ts'
import type { DataDesk } from './data-desk.ts'
import type { EventLog } from './event-log.ts'
import type { Introduction } from './introduction.ts'
import type { PinDesk } from './pin-desk.ts'
import type { WantedReplay } from './replay.ts'
import type { WantedTest } from './rules-desk.ts'

/** A running gateway, as the surfaces and embedding programs see it. They translate; the work is here. */
export type Gateway = {
  readonly instance: string
  /** Stays the same for as long as the data do, and differs between gateways with other data. */
  readonly id: string
  readonly version: string
  /** By which approvals, grants, tokens and sessions expire. */
  readonly clock: Clock
  readonly config: ConfigStore
  readonly identity: Identity
  readonly secrets: Secrets
  /** Through which everything goes that is shown to anybody. */
  readonly masking: Masking
  readonly events: Emitter<EventTable>
  readonly calls: Storage['calls']
  readonly audit: Pick<Storage['audit'], 'find' | 'list' | 'append'> & Pick<Audit, 'verify' | 'export' | 'confirmClock'>
  readonly catalog: Pick<Catalog, 'view'>
  /** Counts a change that somebody is about to make; throws `limit-exceeded` after too many in a minute. */
  admitChange(by: Principal): void
  /** `url` is where the gateway is reached, as the surface that serves it knows. */
  status(url?: string): Status
  /** Without somebody who looks, as the program sees them that the gateway is part of. */
  listServers(by?: Principal, scope?: ScopeKey): Server[]
  getServer(name: string, scope?: ScopeKey, by?: Principal): ServerDetail
  /** Answers after the first attempt to connect, with its state and tools. */
  addServer(principal: Principal, change: ServerChange): Promise<ServerDetail>
  changeServer(principal: Principal, change: ServerChange): Promise<ServerDetail>
  removeServer(principal: Principal, name: string, scope?: ScopeKey): Promise<void>
  enableServer(principal: Principal, name: string, enabled: boolean, scope?: ScopeKey): Promise<ServerDetail>
  reconnectServer(principal: Principal, name: string, scope?: ScopeKey): Promise<ServerDetail>
  /** The risks of a server's tools, and what the words of those without annotations suggest. */
  listRisks(by: Principal, name: string, scope?: ScopeKey): ToolRisk[]
  /** Sets the risks of some tools in an entry; the rest of the entry stays. */
  setRisks(by: Principal, wanted: RisksChange): Promise<ServerDetail>
  serverLogs(name: string, scope?: ScopeKey, by?: Principal): KeptLogs
  /** Tries a definition, or a saved server, on a connection of its own; with the rights of the scope it is for. */
  validateServer(principal: Principal, wanted: ServerTrial, signal: AbortSignal): Promise<Validation>
  /** The servers that hold in a scope, or for whoever looks, and where each value came from. */
  effectiveServers(by: Principal, scope?: ScopeKey): ShownServer[]
  /** Somebody by kind and name, such as `agent:reviewer`, with the owner if one is known. */
  describePrincipal(key: string): Principal
  /** The rules that can speak about somebody's calls, by scope. */
  listRules(of: Principal): RuleScope[]
  listAllRules(): RuleScope[]
  /** Replaces the rules of one scope; `by` is who asks, for the right to and for the record. */
  setRules(by: Principal, scope: ScopeKey, rules: readonly Rule[]): Promise<RuleScope>
  /** What would be decided about a call, and why. */
  testRules(of: Principal, wanted: WantedTest): RuleTest
  /** What changed rules would have answered to past calls. */
  replayRules(wanted: WantedReplay): Promise<Replay>
  readonly data: DataDesk
  readonly pins: PinDesk
  readonly removal: Removal
  /** Questions that wait for a person, and their answers. */
  readonly approvals: ApprovalDesk
  readonly grants: GrantDesk
  /** The last events, for whoever lost the line for a moment. */
  readonly eventLog: EventLog
  /** Addresses outside that hear of events. */
  readonly webhooks: Notify['webhooks']
  introduce(principal: Principal, selector: ViewSelector): Introduction
  listTools(principal: Principal, selector: ViewSelector): Tool[]
  call(request: CallRequest, options: CallOptions): Promise<CallOutcome>
  /** What is buffered for a principal: its requests, and the answers that its clients have not read. */
  accountOf(principal: Principal): Account
  /** Whether agents get their tools: every server has had its first attempt, or `listen.ready` is over. */
  started(): boolean
  /** What a list for this principal waits for: its servers that are connecting for the first time. Bounded. */
  introduced(principal: Principal, selector: ViewSelector): Promise<void> | undefined
  findCall(id: string): Promise<Call | undefined>
  close(): Promise<void>
}

/** In a later scope single fields may be stated: the rest is inherited. */
export type ServerChange = { name: string; definition: ServerDefinition | ScopedServer; scope?: ScopeKey | undefined }
export type RisksChange = {
  name: string
  /** By the server's own names of its tools. */
  risks: Readonly<Record<string, Risk>>
  scope?: ScopeKey | undefined
}
/** A definition, with the name that it is for if there is one; or a saved server by its name. */
export type ServerTrial = {
  definition?: ServerDefinition | undefined
  name?: string | undefined
  scope?: ScopeKey | undefined
}
