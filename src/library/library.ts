/// <reference types="node" preserve="true" />
// The public surface of the package: `import { createGateway } from 'sallyport'`. Programs rely on every name in this file.
export type { CallOutcome, CallRequest } from '../calls/calls.ts'
export type { ViewSelector } from '../catalog/catalog.ts'
export type { Agent } from '../contract/agent.ts'
export type { Approval, ApprovalDetail, ApprovalState, Verdict } from '../contract/approval.ts'
export type { AuditEntry, AuditReport } from '../contract/audit.ts'
export type { Call, CallEndState, CallState } from '../contract/call.ts'
export type { Config } from '../contract/config.ts'
export { type ErrorCode, type ErrorEntry, GatewayError } from '../contract/errors.ts'
export type { EventName, EventTable } from '../contract/events.ts'
export type { Grant, GrantWish, NewGrant } from '../contract/grant.ts'
export type { JsonObject, JsonValue } from '../contract/json.ts'
export type { Pin, PinDecision, PinDetail, PinState } from '../contract/pin.ts'
export type { Principal, Role } from '../contract/principal.ts'
export type { Removed } from '../contract/removal.ts'
export type { Risk } from '../contract/risk.ts'
export type { Rule, RuleAction } from '../contract/rule.ts'
export type { ScopeKey } from '../contract/scope.ts'
export type { Secret } from '../contract/secret.ts'
export type { ConnectionState, Server, ServerDefinition, ServerDetail } from '../contract/server.ts'
export type { NewSession, Session } from '../contract/session.ts'
export type { Status } from '../contract/status.ts'
export type { NewToken, Token } from '../contract/token.ts'
export type { Tool } from '../contract/tool.ts'
export type { User } from '../contract/user.ts'
export type { Delivery, WebhookEndpoint } from '../contract/webhook.ts'
export {
  createGateway,
  type Gateway,
  type GatewayOptions,
  type Introduction,
  type LoggedEvent,
  type ServerChange,
  version,
} from '../gateway/gateway.ts'
export { adminToken } from '../identity/identity.ts'
export type { Clock } from '../lib/clock.ts'
export type { Ids } from '../lib/ids.ts'
export type { Log } from '../lib/log.ts'
export { createMasking, type Masking } from '../masking/masking.ts'
export type { Page } from '../storage/page.ts'
export type { Answer } from '../wire/answer.ts'
export type { Caller, CallerFacts } from '../wire/caller.ts'
