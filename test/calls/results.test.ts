import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Finishing, finishResult } from '../../src/calls/results.ts'
import type { JsonObject, JsonValue } from '../../src/contract/json.ts'
import { parseJson } from '../../src/lib/json.ts'
import { type Answer, createAnswer, toResultAnswer } from '../../src/wire/answer.ts'

const limit = 1024

type KeptThing = { form: 'text' | 'json'; whole: string }

/** Keeps what it is given in a list, under `handle-0` and so on. */
function keeping(most = limit): Finishing & { kept: KeptThing[] } {
  const kept: KeptThing[] = []
  return {
    limit: most,
    kept,
    async keep(form, whole) {
      const handle = `handle-${kept.push({ form, whole }) - 1}`
      return { handle, readOn: (offset) => `${handle} from ${offset}` }
    },
  }
}

async function finish(result: JsonObject, most = limit): Promise<{ shown: JsonObject; kept: KeptThing[] }> {
  const finishing = keeping(most)
  const finished = await finishResult(toResultAnswer(result), finishing)
  return { shown: finished.value(), kept: finishing.kept }
}

function texts(...values: string[]): JsonObject {
  return { content: values.map((text) => ({ type: 'text', text })) }
}

function itemsOf(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : []
}

function textsOf(result: JsonObject): string[] {
  return itemsOf(result.content).flatMap((item) => {
    const { text } = Object(item)
    return typeof text === 'string' ? [text] : []
  })
}

const mark = /\n\[cut by Sallyport: (\d+) of (\d+) characters\]\n\[handle-0 from (\d+)\]$/
const markOf = (shown: number, total: number) =>
  `\n[cut by Sallyport: ${shown} of ${total} characters]\n[handle-0 from ${shown}]`

describe('a result within the limit', () => {
  it('keeps its very bytes', async () => {
    const bytes = Buffer.from('{ "content" : [ {"text":"\\u0061","type":"text"} ] , "n": 1.0 }')
    expect((await finishResult(createAnswer('result', bytes), keeping())).bytes).toBe(bytes)
    const error = Buffer.from('{"code":-32000, "message":"no", "data":{"a":1.0}}')
    expect((await finishResult(createAnswer('error', error), keeping())).bytes).toBe(error)
  })

  it('is not even looked into', async () => {
    const unreadable: Answer = {
      kind: 'result',
      bytes: Buffer.from('{}'),
      masked: 0,
      members: () => expect.unreachable(),
      value: () => expect.unreachable(),
    }
    expect(await finishResult(unreadable, keeping())).toBe(unreadable)
  })

  it('keeps its bytes also when only pictures, sound or unknown parts make it large', async () => {
    const data = 'x'.repeat(10 * limit)
    const results: JsonObject[] = [
      {
        content: [
          { type: 'image', data, mimeType: 'image/png' },
          { type: 'text', text: 'a picture' },
        ],
      },
      { content: [{ type: 'audio', data, mimeType: 'audio/wav' }] },
      { content: [{ type: 'resource', resource: { uri: 'file:///a', blob: data } }] },
      { contents: [{ uri: 'file:///a', blob: data }] },
      { content: [], _meta: { data } },
      { content: 'not a list', data },
      { resultType: 'something newer', data },
    ]
    for (const result of results) {
      const answer = toResultAnswer(result)
      expect(await finishResult(answer, keeping())).toBe(answer)
    }
  })
})

describe('text over the limit', () => {
  it('is cut visibly, with what is shown, what there was and how to read on', async () => {
    const { shown, kept } = await finish(texts('a'.repeat(5000)))
    expect(shown).toEqual({
      content: [{ type: 'text', text: `${'a'.repeat(limit)}${markOf(1024, 5000)}` }],
      _meta: { 'sallyport/cut': { handle: 'handle-0', offset: 1024, total: 5000 } },
    })
    expect(kept).toEqual([{ form: 'text', whole: 'a'.repeat(5000) }])
  })

  it('is shared by several pieces, and everything behind the cut is left out', async () => {
    const parts = ['a'.repeat(600), 'b'.repeat(600), 'c'.repeat(600)]
    const { shown, kept } = await finish(texts(...parts))
    expect(textsOf(shown)).toEqual(['a'.repeat(600), `${'b'.repeat(limit - 601)}${markOf(1024, 1802)}`])
    expect(kept).toEqual([{ form: 'text', whole: parts.join('\n') }])
  })

  it('counts also where it stands in a resource, and only where clients look for it', async () => {
    const text = 'a'.repeat(5000)
    const cut = `${'a'.repeat(limit)}${markOf(1024, 5000)}`
    const embedded = await finish({ content: [{ type: 'resource', resource: { uri: 'file:///a', text } }] })
    expect(embedded.shown.content).toEqual([{ type: 'resource', resource: { uri: 'file:///a', text: cut } }])
    const disguised = { type: 'text', text, resource: { text: '' } }
    expect((await finish({ content: [disguised] })).shown.content).toEqual([{ ...disguised, text: cut }])
  })

  it('is cut in what is read from a resource and in the messages of a prompt as well', async () => {
    const text = 'a'.repeat(5000)
    const cut = `${'a'.repeat(limit)}${markOf(1024, 5000)}`
    const read = await finish({ contents: [{ uri: 'file:///a', mimeType: 'text/csv', text }] })
    expect(read.shown.contents).toEqual([{ uri: 'file:///a', mimeType: 'text/csv', text: cut }])
    const got = await finish({
      description: 'a prompt',
      messages: [
        { role: 'user', content: { type: 'text', text } },
        { role: 'assistant', content: { type: 'resource', resource: { uri: 'a:b', text: 'more' } } },
      ],
    })
    expect(got.shown).toMatchObject({
      description: 'a prompt',
      messages: [{ role: 'user', content: { type: 'text', text: expect.stringMatching(/1024 of 5005 characters/) } }],
    })
    expect(got.kept).toEqual([{ form: 'text', whole: `${text}\nmore` }])
  })

  it('leaves pictures in their places, and whatever else the result says', async () => {
    const picture = { type: 'image', data: 'x', mimeType: 'image/png' }
    const { shown } = await finish({
      content: [{ type: 'text', text: 'a'.repeat(2000), annotations: { priority: 1 } }, picture],
      isError: true,
      _meta: { a: 1 },
    })
    expect(shown).toEqual({
      content: [{ type: 'text', text: expect.stringMatching(mark), annotations: { priority: 1 } }, picture],
      isError: true,
      _meta: { a: 1, 'sallyport/cut': { handle: 'handle-0', offset: 1024, total: 2000 } },
    })
  })

  it('says so where the rest could not be kept', async () => {
    const finishing: Finishing = { limit, keep: async () => ({ readOn: () => 'The rest could not be kept' }) }
    const cut = await finishResult(toResultAnswer(texts('a'.repeat(5000))), finishing)
    expect(cut.value()).toEqual({
      content: [
        { type: 'text', text: expect.stringMatching(/1024 of 5000 characters\]\n\[The rest could not be kept\]$/) },
      ],
      _meta: { 'sallyport/cut': { offset: 1024, total: 5000 } },
    })
  })

  it('is a beginning of the whole with whole characters, within the limit, whatever the text and the limit', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 900, size: 'max' }),
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc.constantFrom('', '😀'.repeat(200), '\\"\u0000\u2028'.repeat(100), 'é'.repeat(700)),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 5 }), fc.integer({ min: 2, max: 1500 }), async (parts, most) => {
        const answer = toResultAnswer(texts(...parts))
        const finishing = keeping(most)
        const finished = await finishResult(answer, finishing)
        const whole = parts.join('\n')
        if (whole.length <= most) return void expect(finished).toBe(answer)
        expect(finishing.kept).toEqual([{ form: 'text', whole }])
        const shown = textsOf(finished.value())
        const [, cutAt, total, next] = mark.exec(shown.at(-1) ?? '') ?? []
        expect([Number(total), next]).toEqual([whole.length, cutAt])
        const given = shown.join('\n').replace(mark, '')
        expect(whole.startsWith(given)).toBe(true)
        expect(given.length).toBe(Number(cutAt))
        expect(given.length).toBeLessThanOrEqual(most)
        expect(given.length).toBeGreaterThanOrEqual(most - 1)
        if (whole.isWellFormed()) expect(given.isWellFormed()).toBe(true)
        expect(parseJson(finished.bytes)).toEqual(finished.value())
      }),
      { numRuns: 150 },
    )
  })

  it('does not grow by being cut, into however many pieces it is split', async () => {
    const answer = toResultAnswer(texts(...Array.from({ length: 5000 }, () => 'ab')))
    expect((await finishResult(answer, keeping())).bytes.length).toBeLessThan(answer.bytes.length)
  })
})

describe('what cannot be cut', () => {
  const picture = (size: number) => ({ type: 'image', data: 'x'.repeat(size), mimeType: 'image/png' })

  it('is left out as a whole over the hard limit, with a note in its place and all of it behind a handle', async () => {
    const large = picture(17 * limit)
    const { shown, kept } = await finish({ content: [{ type: 'text', text: 'look' }, large, picture(10)] })
    expect(shown).toEqual({
      content: [
        { type: 'text', text: 'look' },
        {
          type: 'text',
          text: expect.stringMatching(
            /^\[left out by Sallyport: 1 part \(image\), \d+ characters as JSON, the limit is 16384\]\n\[handle-0 from 0\]$/,
          ),
        },
        picture(10),
      ],
      _meta: { 'sallyport/left-out': { handle: 'handle-0', parts: 1, total: JSON.stringify([large]).length } },
    })
    expect(kept).toEqual([{ form: 'json', whole: JSON.stringify([large]) }])
  })

  it('shares that limit, has one note and one handle for all that is left out, and is no burden for the text', async () => {
    const pictures = Array.from({ length: 40 }, () => picture(limit))
    const { shown, kept } = await finish({ content: [{ type: 'text', text: 'a'.repeat(3000) }, ...pictures] })
    const items = itemsOf(shown.content).map((item) => Object(item))
    expect(items.filter(({ type }) => type === 'image')).toHaveLength(15)
    expect(textsOf(shown)).toEqual([
      expect.stringMatching(mark),
      expect.stringMatching(/25 parts \(image\).*\n\[handle-1 from 0\]$/),
    ])
    expect(kept.map(({ form }) => form)).toEqual(['text', 'json'])
    expect(JSON.parse(kept[1]?.whole ?? '')).toEqual(pictures.slice(15))
  })

  it('is replaced in the form that resources and prompts have', async () => {
    const blob = 'x'.repeat(17 * limit)
    const read = await finish({ contents: [{ uri: 'file:///a.bin', mimeType: 'application/zip', blob }] })
    expect(read.shown.contents).toEqual([
      { uri: 'file:///a.bin', mimeType: 'text/plain', text: expect.stringMatching(/^\[left out .*\(resource\)/) },
    ])
    const got = await finish({ messages: [{ role: 'user', content: picture(17 * limit) }] })
    expect(got.shown.messages).toEqual([
      { role: 'user', content: { type: 'text', text: expect.stringMatching(/^\[left out .*\(image\)/) } },
    ])
  })
})

describe('structured content', () => {
  const structuredOf = (size: number) => ({ rows: 'x'.repeat(size) })

  it('passes whole, while the text beside it is cut', async () => {
    const structuredContent = structuredOf(10 * limit)
    const { shown } = await finish({ ...texts('a'.repeat(5000)), structuredContent })
    expect(shown.structuredContent).toEqual(structuredContent)
    expect(textsOf(shown)).toEqual([expect.stringMatching(mark)])
  })

  it('keeps its very bytes where the text is short', async () => {
    const answer = toResultAnswer({ ...texts('short'), structuredContent: structuredOf(10 * limit) })
    expect(await finishResult(answer, keeping())).toBe(answer)
  })

  it('becomes a failed result over the hard limit, with the whole result behind a handle', async () => {
    const result = { ...texts('{}'), structuredContent: structuredOf(17 * limit) }
    const { shown, kept } = await finish(result)
    const total = JSON.stringify(result).length
    expect(shown).toEqual({
      content: [
        {
          type: 'text',
          text: expect.stringMatching(
            /^result-too-large: .*17\d+ bytes of structured content; the limit is 16384.*\n\[handle-0 from 0\]$/,
          ),
        },
      ],
      isError: true,
      _meta: {
        'sallyport/error': { code: 'result-too-large' },
        'sallyport/left-out': { handle: 'handle-0', total },
      },
    })
    expect(kept).toEqual([{ form: 'json', whole: JSON.stringify(result) }])
  })
})

describe('an error over the limit', () => {
  const errorOf = (error: JsonObject): Answer => createAnswer('error', Buffer.from(JSON.stringify(error)))

  it('keeps its code and as much of its message as fits, without further data', async () => {
    const finished = await finishResult(errorOf({ code: -32000, message: 'm'.repeat(3000), data: 'd' }), keeping())
    expect(finished.kind).toBe('error')
    expect(finished.value()).toEqual({
      code: -32000,
      message: `${'m'.repeat(limit)}\n[cut by Sallyport: 1024 of 3000 characters]`,
    })
    const plain = await finishResult(errorOf({ code: 7, message: 'no', data: 'd'.repeat(3000) }), keeping())
    expect(plain.value()).toEqual({ code: 7, message: 'no' })
  })
})
