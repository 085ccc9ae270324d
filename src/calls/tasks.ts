import type { Catalog, Target, ViewSelector } from '../catalog/catalog.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Permit } from '../contract/permit.ts'
import { type Principal, toPrincipalId } from '../contract/principal.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, memberText } from '../wire/answer.ts'

/** Work that a server goes on with after the call was answered: who started it, and with which tool. */
export type Tasks = {
  /** The answer may name a task; from now on its caller can ask for it. */
  noteAnswer(asked: { selector: ViewSelector; name: string }, permit: Permit, answer: Answer): void
  /** The server that works on a task of this caller, if the caller may still use the tool that started it. */
  resolve(principal: Principal, id: string): Target | undefined
  /** The arguments and `_meta` that a task was started with: rules judge by them who may ask for it. */
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
/** Larger ones are not kept: what can be asked of many tasks must not fill the memory. */
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
      return { ...target, original: id, risk: 'read' } // what the work may do was decided when it began
    },
    startedWith: (principal, id) => started.get(toPrincipalId(principal))?.get(id) ?? unknown,
  }

  function kept({ arguments: given, meta }: Permit): Pick<Started, 'arguments' | 'meta'> {
    return { arguments: small(given), ...(meta && { meta: small(meta) }) }
  }

  function small(given: JsonObject): JsonObject {
    return JSON.stringify(given).length <= maxArguments ? given : none
  }

  /** The oldest go: their servers have forgotten them as well. */
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

/** The newer era says by its kind of result that it started a task; the older one answers a request for one. */
function taskOf({ input }: Permit, answer: Answer): string | undefined {
  if (answer.kind === 'error') return undefined
  if (memberText(answer, 'resultType') === '"task"') return toId(answer.value().taskId)
  const { task } = input?.task === undefined ? {} : answer.value()
  return isObject(task) ? toId(task.taskId) : undefined
}

function toId(value: unknown): string | undefined {
  return typeof value === 'string' && value.length <= 1024 ? value : undefined
}
