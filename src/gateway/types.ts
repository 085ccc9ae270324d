import type { ApprovalService, GrantService } from '../approvals/approvals.ts'
import type { Audit } from '../audit/audit.ts'
import type { CallOptions, CallOutcome, CallRequest } from '../calls/calls.ts'
import type { Catalog, Introduction, ViewSelector } from '../catalog/catalog.ts'
import type { ConfigStore } from '../config/config.ts'
import type { EventTable } from '../contract/events.ts'
import type { Principal } from '../contract/principal.ts'
import type { Identity } from '../identity/identity.ts'
import type { Clock } from '../lib/clock.ts'
import type { Account } from '../lib/delivery.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Masking } from '../masking/masking.ts'
import type { EventLog, Notify } from '../notify/notify.ts'
import type { PinService } from '../pins/pins.ts'
import type { RuleService } from '../policy/policy.ts'
import type { Removal } from '../removal/removal.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { ServerService } from '../servers/servers.ts'
import type { ReadStatus } from '../status/status.ts'
import type { DataService } from '../storage/data.ts'
import type { Storage } from '../storage/storage.ts'

/** Calls, from the one that makes them to the record of past ones. */
export type CallService = Storage['calls'] & {
  /** Makes a call, or takes up one that waits. */
  run(request: CallRequest, options: CallOptions): Promise<CallOutcome>
  /** What is buffered for a principal: its requests, and the answers that its clients have not read. */
  accountOf(principal: Principal): Account
}

/** A running gateway, as the surfaces and embedding programs see it: one object for each noun. */
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
  readonly calls: CallService
  readonly audit: Pick<Storage['audit'], 'find' | 'list' | 'append'> & Pick<Audit, 'verify' | 'export' | 'confirmClock'>
  readonly catalog: Pick<Catalog, 'view' | 'listTools'>
  readonly servers: ServerService
  readonly rules: RuleService
  readonly approvals: ApprovalService
  readonly grants: GrantService
  readonly pins: PinService
  readonly data: DataService
  readonly removal: Removal
  /** The last events, for clients that lost their connection for a moment. */
  readonly eventLog: EventLog
  /** Addresses outside that events are sent to. */
  readonly webhooks: Notify['webhooks']
  /** Counts a change that a principal is about to make; throws `limit-exceeded` after too many in a minute. */
  admitChange(by: Principal): void
  readonly status: ReadStatus
  introduce(principal: Principal, selector: ViewSelector): Introduction
  /** Whether agents get their tools: every server has had its first attempt, or `listen.ready` is over. */
  started(): boolean
  /** What a list for this principal waits for: its servers that are connecting for the first time. Bounded. */
  introduced(principal: Principal, selector: ViewSelector): Promise<void> | undefined
  close(): Promise<void>
}
