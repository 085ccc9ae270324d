import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../src/contract/errors.ts'
import { createListening, type Listening, type ListeningParts } from '../../src/servers/listening.ts'
import { createSubscriptions, type Following } from '../../src/servers/subscriptions.ts'
import type { Answer } from '../../src/wire/answer.ts'
import { createMovableClock } from '../scenarios/mcp/clock.ts'

/** A server that notes what it is asked for; a test decides when, and whether, it agrees. */
function createLink() {
  const asked: string[] = []
  const follows: PromiseWithResolvers<void>[] = []
  const unfollows: PromiseWithResolvers<void>[] = []
  const answerTo = (list: PromiseWithResolvers<void>[]) => {
    const answer = Promise.withResolvers<void>()
    list.push(answer)
    return answer.promise
  }
  const link: Following = {
    follow(uri) {
      asked.push(`follow ${uri}`)
      return answerTo(follows)
    },
    unfollow(uri) {
      asked.push(`unfollow ${uri}`)
      return answerTo(unfollows)
    },
  }
  return { link, asked, follows, unfollows }
}

function createSubscriber() {
  const controller = new AbortController()
  const heard: string[] = []
  return {
    signal: controller.signal,
    onUpdated: (uri: string) => void heard.push(uri),
    heard,
    leave: () => controller.abort(),
  }
}

const settled = () => new Promise(setImmediate)

describe('subscriptions', () => {
  it('are made once for the first who comes, and taken back once for the last who goes', async () => {
    const { link, asked, follows } = createLink()
    const subscriptions = createSubscriptions({ current: () => link })
    const [first, second] = [createSubscriber(), createSubscriber()]
    const added = [subscriptions.add('a:1', first, link), subscriptions.add('a:1', second, link)]
    await settled()
    follows[0]?.resolve()
    await Promise.all(added)
    subscriptions.updated('a:1')
    first.leave()
    subscriptions.updated('a:1')
    expect([first.heard, second.heard]).toEqual([['a:1'], ['a:1', 'a:1']])
    expect(asked).toEqual(['follow a:1'])
    second.leave()
    await settled()
    expect(asked).toEqual(['follow a:1', 'unfollow a:1'])
    subscriptions.updated('a:1')
    expect(second.heard.length).toBe(2)
  })

  it('are refused to everybody who waits for a server that refuses', async () => {
    const { link, follows, asked } = createLink()
    const subscriptions = createSubscriptions({ current: () => link })
    const [first, second] = [createSubscriber(), createSubscriber()]
    const added = [subscriptions.add('a:1', first, link), subscriptions.add('a:1', second, link)]
    await settled()
    follows[0]?.reject(new GatewayError('server-refused', 'no'))
    for (const each of added) await expect(each).rejects.toMatchObject({ code: 'server-refused' })
    subscriptions.updated('a:1')
    expect([...first.heard, ...second.heard]).toEqual([])
    const third = subscriptions.add('a:1', createSubscriber(), link)
    await settled()
    follows[1]?.resolve()
    await third
    expect(asked.filter((each) => each.startsWith('follow'))).toEqual(['follow a:1', 'follow a:1'])
  })

  it('of one resource reach the server one after the other, in the order in which they were wished', async () => {
    const { link, asked, follows, unfollows } = createLink()
    const subscriptions = createSubscriptions({ current: () => link })
    const first = createSubscriber()
    const added = subscriptions.add('a:1', first, link)
    await settled()
    follows[0]?.resolve()
    await added
    first.leave()
    const second = createSubscriber()
    const again = subscriptions.add('a:1', second, link)
    await settled()
    expect(asked).toEqual(['follow a:1', 'unfollow a:1'])
    unfollows[0]?.resolve()
    await settled()
    expect(asked).toEqual(['follow a:1', 'unfollow a:1', 'follow a:1'])
    follows[1]?.resolve()
    await again
    subscriptions.updated('a:1')
    expect(second.heard).toEqual(['a:1'])
  })

  it('hear of parts of what they follow, and of nothing beside it', () => {
    const { link } = createLink()
    const subscriptions = createSubscriptions({ current: () => link })
    const [file, folder] = [createSubscriber(), createSubscriber()]
    subscriptions.add('file:///a', file, link).catch(() => {})
    subscriptions.add('file:///d/', folder, link).catch(() => {})
    for (const uri of ['file:///a', 'file:///a/b', 'file:///ab', 'file:///d/x', 'file:///d', 'file:///'])
      subscriptions.updated(uri)
    expect(file.heard).toEqual(['file:///a', 'file:///a/b'])
    expect(folder.heard).toEqual(['file:///d/x'])
  })

  it('are told no address of a length that nobody could follow', () => {
    const { link } = createLink()
    const subscriptions = createSubscriptions({ current: () => link })
    const subscriber = createSubscriber()
    subscriptions.add('a:1', subscriber, link).catch(() => {})
    subscriptions.updated(`a:1/${'x'.repeat(100_000)}`)
    expect(subscriber.heard).toEqual([])
  })

  it('are made again on a new link, those that are still wanted', async () => {
    const [before, after] = [createLink(), createLink()]
    let current = before.link
    const subscriptions = createSubscriptions({ current: () => current })
    const [kept, left] = [createSubscriber(), createSubscriber()]
    const added = [subscriptions.add('a:1', kept, before.link), subscriptions.add('a:2', left, before.link)]
    await settled()
    for (const each of before.follows) each.resolve()
    await Promise.all(added)
    left.leave()
    current = after.link
    subscriptions.renew(after.link)
    await settled()
    expect(after.asked).toEqual(['follow a:1'])
    kept.leave()
    after.follows[0]?.resolve()
    await settled()
    expect(after.asked).toEqual(['follow a:1', 'unfollow a:1'])
  })

  it('are at most a thousand for one server', async () => {
    const { link } = createLink()
    const subscriptions = createSubscriptions({ current: () => link })
    for (let number = 0; number < 1000; number++)
      subscriptions.add(`a:${number}`, createSubscriber(), link).catch(() => {})
    await expect(subscriptions.add('a:more', createSubscriber(), link)).rejects.toMatchObject({
      code: 'limit-exceeded',
    })
  })
})

describe('listening to a server of the newer era', () => {
  type Request = {
    readonly wanted: readonly string[]
    readonly signal: AbortSignal
    acknowledge(honoured: unknown): void
    end(answer: Answer): void
    fail(): void
  }

  function listen(parts: Partial<ListeningParts> = {}) {
    const clock = createMovableClock()
    const requests: Request[] = []
    const closing = new AbortController()
    const listening: Listening = createListening({
      clock,
      closing: closing.signal,
      acknowledgeTimeoutMs: 10_000,
      request(params, { signal, onAcknowledged }) {
        const { promise, resolve, reject } = Promise.withResolvers<Answer>()
        const fail = () => reject(new GatewayError('call-cancelled', 'gone'))
        signal.addEventListener('abort', fail)
        const wanted = params.notifications.resourceSubscriptions ?? []
        requests.push({ wanted, signal, acknowledge: onAcknowledged, end: resolve, fail })
        return promise
      },
      onGap() {},
      ...parts,
    })
    return { clock, requests, listening, closing }
  }

  it('begins anew with what is wanted, and lets go of the old only when the new one stands', async () => {
    const { requests, listening } = listen()
    requests.at(-1)?.acknowledge({ toolsListChanged: true })
    const followed = listening.follow('a:1')
    await settled()
    expect(requests.map(({ wanted, signal }) => [wanted, signal.aborted])).toEqual([
      [[], false],
      [['a:1'], false],
    ])
    requests.at(-1)?.acknowledge({ resourceSubscriptions: ['a:1'] })
    await followed
    expect(requests.map(({ signal }) => signal.aborted)).toEqual([true, false])
  })

  it('does not take the acknowledgement of what it has given up for that of what it wants now', async () => {
    const { requests, listening } = listen()
    requests[0]?.acknowledge({})
    const first = listening.follow('a:1')
    first.catch(() => {})
    await settled()
    listening.unfollow('a:1')
    await settled()
    const again = listening.follow('a:1')
    await settled()
    const [, , given, wanted] = requests
    expect([given?.wanted, wanted?.wanted]).toEqual([[], ['a:1']])
    given?.acknowledge({ toolsListChanged: true })
    wanted?.acknowledge({ resourceSubscriptions: ['a:1'] })
    await expect(again).resolves.toBeUndefined()
  })

  it('is no following for a resource that the server does not list in what it honours', async () => {
    const { requests, listening } = listen()
    requests.at(-1)?.acknowledge({})
    const [honoured, ignored] = [listening.follow('a:1'), listening.follow('a:2')]
    ignored.catch(() => {})
    await settled()
    requests.at(-1)?.acknowledge({ resourceSubscriptions: ['a:1'] })
    await expect(honoured).resolves.toBeUndefined()
    await expect(ignored).rejects.toMatchObject({ code: 'method-not-found' })
  })

  it('does not wait for ever for a server that never acknowledges', async () => {
    const { listening, clock } = listen()
    const followed = listening.follow('a:1')
    followed.catch(() => {})
    await settled()
    clock.advance(10_100)
    await expect(followed).rejects.toMatchObject({ code: 'call-timeout' })
  })

  it('fails those who wait when the server refuses', async () => {
    const { listening, requests } = listen()
    const followed = listening.follow('a:1')
    followed.catch(() => {})
    await settled()
    requests.at(-1)?.fail()
    await expect(followed).rejects.toBeInstanceOf(GatewayError)
  })
})
