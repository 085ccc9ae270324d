import type { Catalog, Target, ViewSelector } from '../catalog/catalog.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Permit } from '../contract/permit.ts'
import { type Principal, toPrincipalId } from '../contract/principal.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, memberText } from '../wire/answer.ts'

/** Remembers which principal started a task, and with which tool. A server continues a task after it answered the call. */
export type Tasks = {
  /** If the answer contains a task, its caller can use the task methods for it from now on. */
  noteAnswer(asked: { selector: ViewSelector; name: string }, permit: Permit, answer: Answer): void
  /** The server of a task of this caller, if the caller may still use the tool that started the task. */
  resolve(principal: Principal, id: string): Target | undefined
  /** The arguments and `_meta` of the call that started a task. Rules use them to decide about later requests for the task. */
  startedWith(principal: Principal, id: string): Pick<Started, 'arguments' | 'meta'>
}

type Started = {
  readonly selector: ViewSelector
  readonly name: string
  readonly connection: string
  readonly arguments: JsonObject
  readonly meta?: JsonObject | undefined
}

const maxTasks = 10_000
const maxPerCaller = 1000
/** Larger arguments are not stored, so that many tasks do not fill the memory. */
const maxArguments = 16_384
const none: JsonObject = {}
const unknown = { arguments: none }

export function createTasks(catalog: Pick<Catalog, 'resolve'>): Tasks {
  const started = new Map<string, Map<string, Started>>()
  let count = 0

  return {
    noteAnswer({ selector, name }, permit, answer) {
      const id = permit.method === 'tools/call' ? taskOf(permit, answer) : undefined
      if (id === undefined) return
      const own = started.get(permit.principalId) ?? new Map<string, Started>()
      if (!own.has(id)) makeRoom(own)
      started.set(permit.principalId, own)
      own.set(id, { selector, name, connection: permit.connection, ...kept(permit) })
    },
    resolve(principal, id) {
      const task = started.get(toPrincipalId(principal))?.get(id)
      const tool = task && catalog.resolve(principal, task.selector, 'tools/call', task.name)
      if (!tool || tool.connection !== task.connection) return undefined
      const { mirrors: _mirrors, liveMirrors: _live, drifted: _drifted, ...target } = tool
      return { ...target, original: id, risk: 'read' } // the effects of the task were decided when it started
    },
    startedWith: (principal, id) => started.get(toPrincipalId(principal))?.get(id) ?? unknown,
  }

  function kept({ arguments: given, meta }: Permit): Pick<Started, 'arguments' | 'meta'> {
    return { arguments: small(given), ...(meta && { meta: small(meta) }) }
  }

  function small(given: JsonObject): JsonObject {
    return JSON.stringify(given).length <= maxArguments ? given : none
  }

  /** Removes the oldest tasks. Their servers have probably removed them too. */
  function makeRoom(own: Map<string, Started>): void {
    if (own.size >= maxPerCaller) forgetFirst(own)
    const [others] = [...started.values()].filter(({ size }) => size > 0)
    if (count >= maxTasks && others) forgetFirst(others)
    count++
  }

  function forgetFirst(tasks: Map<string, Started>): void {
    for (const id of tasks.keys()) {
      tasks.delete(id)
      count--
      return
    }
  }
}

/** Newer protocol revisions mark the result as a task. In older ones the caller requests a task, and the result contains it. */
function taskOf({ input }: Permit, answer: Answer): string | undefined {
  if (answer.kind === 'error') return undefined
  if (memberText(answer, 'resultType') === '"task"') return toId(answer.value().taskId)
  const { task } = input?.task === undefined ? {} : answer.value()
  return isObject(task) ? toId(task.taskId) : undefined
}

function toId(value: unknown): string | undefined {
  return typeof value === 'string' && value.length <= 1024 ? value : undefined
}
