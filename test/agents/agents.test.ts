import { beforeAll, describe, expect, it } from 'vitest'
import { agents, install } from './agents.ts'
import type { Turn } from './formats/format.ts'
import { findTool, inOrder, type Script } from './scripted-model.ts'
import { openStage, type Stage } from './stage.ts'

/** How often a model asks again for a tool that it was told of before it gives up. */
const patience = 200

describe.each(agents)('$title', (agent) => {
  beforeAll(() => install(agent))

  it('lists what the gateway offers, calls a tool and hands its result to the model', async () => {
    await using stage = await openStage(agent)
    const script = inOrder({ call: 'rec_echo', arguments: { text: 'from the server' } }, { say: 'all is done' })
    const { turns, stdout, stderr, strangers } = await stage.run(script)
    const [first, second] = turns
    for (const name of ['rec_echo', 'rec_structured', 'rec_destroy_thing']) {
      expect(offered(first, name), `${name} was not offered; the agent says: ${stderr}`).toBe(true)
    }
    expect(second?.results).toEqual([expect.stringContaining('from the server')])
    expect(stdout).toContain('all is done')
    expect(strangers).toEqual([])
    expect(await stage.received()).toMatchObject([{ name: 'echo', arguments: { text: 'from the server' } }])
    expect(await stage.calls()).toMatchObject([{ tool: 'rec_echo', state: 'ok', principal: 'agent:tester' }])
  })

  it('hands a denial of the gateway to the model as text, and goes on', async () => {
    await using stage = await openStage(agent)
    const script = inOrder({ call: 'rec_destroy_thing' }, { call: 'rec_echo', arguments: { text: 'instead' } }, over)
    const { turns, stdout } = await stage.run(script)
    const results = turns.at(-1)?.results ?? []
    expect(results[0]).toContain('call-denied: rec_destroy_thing was denied')
    expect(results[1]).toContain('instead')
    expect(stdout).toContain(over.say)
    expect((await stage.received()).map(({ name }) => name)).toEqual(['echo'])
    expect((await stage.calls()).map(({ state }) => state)).toEqual(['denied', 'ok'])
  })

  it('waits while a person approves on the page, and its next turn has the result', async () => {
    await using stage = await openStage(agent)
    await using person = await stage.person()
    const running = stage.run(untilAnswered({ call: 'rec_write_thing', arguments: { n: 70_007 } }))
    await person.approve()
    const { turns, stdout } = await running
    expect(turns.at(-1)?.results.at(-1)).toContain('70007')
    expect(stdout).toContain(over.say)
    expect(await stage.received()).toMatchObject([{ name: 'write_thing', arguments: { n: 70_007 } }])
    expect(await stage.calls()).toMatchObject([{ tool: 'rec_write_thing', state: 'ok', decision: 'approved by ada' }])
  })

  it('hands the reason of a person who denies to the model, and nothing runs', async () => {
    await using stage = await openStage(agent)
    await using person = await stage.person()
    const running = stage.run(untilAnswered({ call: 'rec_write_thing', arguments: { n: 8 } }))
    await person.deny('Not before the release')
    const { turns, stdout } = await running
    expect(turns.at(-1)?.results.at(-1)).toContain(
      'approval-denied: ada denied rec_write_thing: Not before the release',
    )
    expect(stdout).toContain(over.say)
    expect(await stage.received()).toEqual([])
    expect(await stage.calls()).toMatchObject([{ tool: 'rec_write_thing', state: 'denied' }])
  })

  const listsAgain = 'finds a tool that a server adds in the middle of a run'
  const listsLater = 'keeps its list through a run in which a server adds a tool, and finds that tool in its next run'
  it(agent.listsAgain ? listsAgain : listsLater, async () => {
    await using stage = await openStage(agent)
    const run = await stage.run(agent.listsAgain ? addThenFind(stage) : addThenGoOn(stage))
    expect(run.turns[0] && findTool(run.turns[0], 'rec_midway')).toBeUndefined()
    expect(run.stdout).toContain(over.say)
    if (!agent.listsAgain) {
      expect(offered(run.turns.at(-1), 'rec_midway')).toBe(false)
      await stage.run(inOrder({ call: 'rec_midway', arguments: { found: true } }, over))
    }
    expect((await stage.received()).at(-1)).toMatchObject({ name: 'midway', arguments: { found: true } })
    expect((await stage.calls()).at(-1)).toMatchObject({ tool: 'rec_midway', state: 'ok' })
  })

  it(restartTitles[agent.afterRestart], async () => {
    await using stage = await openStage(agent)
    const goOn = agent.listsAgain ? addThenFind(stage, 2) : () => over
    const run = await stage.run(async (turn) => {
      const { results } = turn
      if (results.length === 0) return { call: 'rec_echo', arguments: { text: 'before' } }
      if (results.length > 1) return agent.afterRestart === 'tells' ? over : goOn(turn)
      await stage.restart()
      return { call: 'rec_echo', arguments: { text: 'after' } }
    })
    expect(run.stdout).toContain(over.say)
    const results = run.turns.at(-1)?.results ?? []
    if (agent.afterRestart === 'tells') {
      expect(results[1]).toContain('session-not-found')
      await stage.run(inOrder({ call: 'rec_echo', arguments: { text: 'after' } }, over))
    } else {
      expect(results[1]).toContain('after')
      if (agent.listsAgain) expect(results.at(-1)).toContain('found')
    }
    const texts = (await stage.received()).map((call) => call.arguments?.text)
    expect(texts.filter((text) => text === 'before' || text === 'after')).toEqual(['before', 'after'])
    expect((await stage.calls()).filter(({ state }) => state !== 'ok')).toEqual([])
  })
})

const restartTitles = {
  renews: 'opens a new session when the gateway was started again in the middle of a run, and repeats the refused call',
  stateless: 'goes on when the gateway was started again in the middle of a run, and hears of changes again',
  tells: 'tells the model when the gateway was started again in the middle of a run, and is well in its next run',
}

const over = { say: 'the end' }

function offered(turn: Turn | undefined, name: string): boolean {
  return turn !== undefined && findTool(turn, name) !== undefined
}

/** Adds a tool after some results, and calls something else until the agent offers the new one. */
function addThenFind(stage: Stage, after = 0): Script {
  return async (turn) => {
    const { results } = turn
    if (results.length === after) return { call: 'rec_change_list', arguments: { name: 'midway' } }
    await stage.offers('rec_midway')
    if (results.at(-1)?.includes('found') || results.length > patience) return over
    if (offered(turn, 'rec_midway')) return { call: 'rec_midway', arguments: { found: true } }
    return { call: 'rec_echo', arguments: { text: 'not yet', delayMs: 100 } }
  }
}

/** Does what it is told: as long as a call waits for a person, it makes the same call again. */
function untilAnswered(call: { call: string; arguments: Record<string, unknown> }): Script {
  return ({ results }) => {
    const last = results.at(-1)
    return last === undefined || last.includes('approval-waiting') ? call : over
  }
}

function addThenGoOn(stage: Stage): Script {
  return async ({ results }) => {
    if (results.length === 0) return { call: 'rec_change_list', arguments: { name: 'midway' } }
    await stage.offers('rec_midway')
    return results.length > 5 ? over : { call: 'rec_echo', arguments: { text: 'still here', delayMs: 50 } }
  }
}
