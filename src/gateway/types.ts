import type { ApprovalService, GrantService } from '../approvals/approvals.ts'
import type { Audit } from '../audit/audit.ts'
import type { CallOutcome, CallRequest } from '../calls/calls.ts'
import type { Catalog, Introduction, ViewSelector } from '../catalog/catalog.ts'
import type { ConfigStore } from '../config/config.ts'
import type { EventTable } from '../contract/events.ts'
import type { Principal } from '../contract/principal.ts'
import type { Gallery } from '../gallery/gallery.ts'
import type { Identity } from '../identity/identity.ts'
import type { ImportService } from '../imports/imports.ts'
import type { Clock } from '../lib/clock.ts'
import type { Account } from '../lib/delivery.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Masking } from '../masking/masking.ts'
import type { EventLog, Notify } from '../notify/notify.ts'
import type { PinService } from '../pins/pins.ts'
import type { RuleService } from '../policy/policy.ts'
import type { ProjectService } from '../projects/projects.ts'
import type { Removal } from '../removal/removal.ts'
import type { Repositories } from '../repositories/repositories.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { ServerFiles } from '../server-files/server-files.ts'
import type { ServerService } from '../servers/servers.ts'
import type { ReadStatus } from '../status/status.ts'
import type { DataService } from '../storage/data.ts'
import type { AuditStore, Change } from '../storage/tables/audit.ts'
import type { CallStore } from '../storage/tables/calls.ts'
import type { CallerFacts } from '../wire/caller.ts'

/** Makes calls, and reads recorded calls. */
export type CallService = Pick<CallStore, 'find' | 'list'> & {
  /** Makes a call, or continues one that waits for approval. */
  run(request: CallRequest, caller: CallerFacts): Promise<CallOutcome>
  /** The bytes buffered for a principal: its requests, and answers that its clients have not read. */
  accountOf(principal: Principal): Account
}

/** A running gateway, as the surfaces and embedding programs see it: one object for each noun. */
export type Gateway = {
  readonly instance: string
  /** Identifies the data: the same for all instances on the same data and after restarts, different for other data. */
  readonly id: string
  readonly version: string
  /** The clock for the expiry of approvals, grants, tokens and sessions. */
  readonly clock: Clock
  readonly config: ConfigStore
  readonly identity: Omit<Identity, 'users' | 'agents' | 'sessions' | 'tokens'>
  readonly users: Identity['users']
  readonly agents: Identity['agents']
  readonly sessions: Identity['sessions']
  readonly tokens: Identity['tokens']
  readonly secrets: Secrets
  /** Masks secrets in everything that is shown or sent. */
  readonly masking: Masking
  readonly events: Emitter<EventTable>
  readonly calls: CallService
  readonly audit: Pick<AuditStore, 'find' | 'list'> &
    Pick<Audit, 'verify' | 'export' | 'confirmClock'> & { append(change: Change): Promise<void> }
  readonly catalog: Pick<Catalog, 'view' | 'listTools'>
  readonly servers: ServerService
  readonly imports: ImportService
  readonly gallery: Gallery
  /** Files in repositories that projects take servers from. */
  readonly repositories: Pick<Repositories, 'get' | 'accept' | 'notices'>
  /** The file `mcp-servers.json`, which only `serve` reads. */
  readonly serverFiles: Pick<ServerFiles, 'list' | 'trust'>
  readonly rules: RuleService
  readonly approvals: ApprovalService
  readonly grants: GrantService
  readonly pins: PinService
  readonly data: DataService
  readonly removal: Removal
  readonly projects: ProjectService
  /** The last events, for clients that lost their connection for a moment. */
  readonly eventLog: EventLog
  /** The endpoints that events are sent to. */
  readonly webhooks: Notify['webhooks']
  /** Counts a change that a principal is about to make; throws `limit-exceeded` after too many in a minute. */
  admitChange(by: Principal): void
  readonly status: ReadStatus
  introduce(principal: Principal, selector: ViewSelector): Introduction
  /** True when every server has made its first attempt to connect, or `listen.ready` milliseconds have passed. */
  started(): boolean
  /** Resolves when the principal's servers have made their first attempt to connect, or after `limits.firstList`. */
  introduced(principal: Principal, selector: ViewSelector): Promise<void> | undefined
  close(): Promise<void>
}
