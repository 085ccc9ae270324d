import { isObject } from '../lib/json.ts'

/** Old event names in configurations of earlier versions, with their current names. */
const renamedEvents: Readonly<Record<string, string>> = {
  'question-asked': 'approval-requested',
  'question-answered': 'approval-answered',
}

/** The value of a configuration with the current event names. Everything else is returned unchanged. */
export function withCurrentNames(value: unknown): unknown {
  if (!isObject(value) || !isObject(value.webhooks)) return value
  const webhooks = Object.entries(value.webhooks).map(([name, webhook]) => [name, withCurrentEvents(webhook)] as const)
  return { ...value, webhooks: Object.fromEntries(webhooks) }
}

function withCurrentEvents(webhook: unknown): unknown {
  if (!isObject(webhook) || !Array.isArray(webhook.events)) return webhook
  return { ...webhook, events: webhook.events.map(toCurrentEvent) }
}

function toCurrentEvent(event: unknown): unknown {
  return typeof event === 'string' && Object.hasOwn(renamedEvents, event) ? renamedEvents[event] : event
}
