import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { finishResult } from '../../src/calls/results.ts'
import type { JsonObject } from '../../src/contract/json.ts'
import { type Answer, createAnswer, toResultAnswer } from '../../src/wire/answer.ts'

const limit = 1024

function finish(result: JsonObject): JsonObject {
  return finishResult(toResultAnswer(result), limit).value()
}

function texts(...values: string[]): JsonObject {
  return { content: values.map((text) => ({ type: 'text', text })) }
}

function textsOf(result: JsonObject): string[] {
  const content = Array.isArray(result.content) ? result.content : []
  return content.flatMap((item) => {
    const { text } = Object(item)
    return typeof text === 'string' ? [text] : []
  })
}

const mark = /\n\[cut by Sallyport: 1024 of (\d+) characters\]$/

describe('a result within the limit', () => {
  it('keeps its very bytes', () => {
    const bytes = Buffer.from('{ "content" : [ {"text":"\\u0061","type":"text"} ] , "n": 1.0 }')
    expect(finishResult(createAnswer('result', bytes), limit).bytes).toBe(bytes)
    const error = Buffer.from('{"code":-32000, "message":"no", "data":{"a":1.0}}')
    expect(finishResult(createAnswer('error', error), limit).bytes).toBe(error)
  })

  it('keeps them also when only pictures, sound or unknown parts make it large', () => {
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
      { content: [], _meta: { data } },
      { content: 'not a list', data },
      { resultType: 'something newer', data },
    ]
    for (const result of results) {
      const answer = toResultAnswer(result)
      expect(finishResult(answer, limit)).toBe(answer)
    }
  })
})

describe('text over the limit', () => {
  it('is cut visibly, with what is shown and what there was', () => {
    const [shown, ...others] = textsOf(finish(texts('a'.repeat(5000))))
    expect(others).toEqual([])
    expect(shown).toBe(`${'a'.repeat(limit)}\n[cut by Sallyport: 1024 of 5000 characters]`)
  })

  it('is shared by several pieces, and everything behind the cut is left out', () => {
    const parts = ['a'.repeat(600), 'b'.repeat(600), 'c'.repeat(600)]
    expect(textsOf(finish(texts(...parts)))).toEqual([
      'a'.repeat(600),
      `${'b'.repeat(limit - 600)}\n[cut by Sallyport: 1024 of 1800 characters]`,
    ])
  })

  it('counts also where it stands in a resource, and only where clients look for it', () => {
    const text = 'a'.repeat(5000)
    const cut = `${'a'.repeat(limit)}\n[cut by Sallyport: 1024 of 5000 characters]`
    expect(finish({ content: [{ type: 'resource', resource: { uri: 'file:///a', text } }] })).toEqual({
      content: [{ type: 'resource', resource: { uri: 'file:///a', text: cut } }],
    })
    const disguised = { type: 'text', text, resource: { text: '' } }
    expect(finish({ content: [disguised] })).toEqual({ content: [{ ...disguised, text: cut }] })
  })

  it('leaves pictures in their places, and whatever else the result says', () => {
    const picture = { type: 'image', data: 'x', mimeType: 'image/png' }
    const result = {
      content: [{ type: 'text', text: 'a'.repeat(2000), annotations: { priority: 1 } }, picture],
      isError: true,
      _meta: { a: 1 },
    }
    expect(finish(result)).toEqual({
      content: [{ type: 'text', text: expect.stringMatching(mark), annotations: { priority: 1 } }, picture],
      isError: true,
      _meta: { a: 1 },
    })
  })

  it('is never more than the limit and the mark, never cuts a character in half, and never changes what is shown', () => {
    const pieces = fc.array(fc.string({ unit: 'grapheme', maxLength: 900, size: 'max' }), { maxLength: 4 })
    fc.assert(
      fc.property(pieces, (parts) => {
        const shown = textsOf(finish(texts(...parts)))
        const total = parts.join('').length
        if (total <= limit) return void expect(shown).toEqual(parts)
        expect(shown.at(-1)).toMatch(mark)
        const kept = shown.join('').replace(mark, '')
        expect(parts.join('').startsWith(kept)).toBe(true)
        expect(kept.length).toBeGreaterThanOrEqual(limit - 1)
        expect(kept.length).toBeLessThanOrEqual(limit)
        expect(kept.isWellFormed()).toBe(true)
      }),
      { numRuns: 100 },
    )
  })

  it('does not grow by being cut, into however many pieces it is split', () => {
    const many = texts(...Array.from({ length: 5000 }, () => 'ab'))
    const answer = toResultAnswer(many)
    expect(finishResult(answer, limit).bytes.length).toBeLessThan(answer.bytes.length)
  })
})

describe('structured content', () => {
  const structuredOf = (size: number) => ({ rows: 'x'.repeat(size) })

  it('passes whole, while the text beside it is cut', () => {
    const structuredContent = structuredOf(10 * limit)
    const result = finish({ ...texts('a'.repeat(5000)), structuredContent })
    expect(result.structuredContent).toEqual(structuredContent)
    expect(textsOf(result)).toEqual([expect.stringMatching(mark)])
  })

  it('keeps its very bytes where the text is short', () => {
    const answer = toResultAnswer({ ...texts('short'), structuredContent: structuredOf(10 * limit) })
    expect(finishResult(answer, limit)).toBe(answer)
  })

  it('becomes a failed result that says so over the hard limit', () => {
    const result = finish({ ...texts('{}'), structuredContent: structuredOf(17 * limit) })
    expect(result).toEqual({
      content: [
        { type: 'text', text: expect.stringMatching(/17\d+ bytes of structured content, more than the 16384/) },
      ],
      isError: true,
    })
  })
})

describe('an error over the limit', () => {
  const errorOf = (error: JsonObject): Answer => createAnswer('error', Buffer.from(JSON.stringify(error)))

  it('keeps its code and as much of its message as fits, without further data', () => {
    const finished = finishResult(errorOf({ code: -32000, message: 'm'.repeat(3000), data: 'd' }), limit)
    expect(finished.kind).toBe('error')
    expect(finished.value()).toEqual({
      code: -32000,
      message: `${'m'.repeat(limit)}\n[cut by Sallyport: 1024 of 3000 characters]`,
    })
    expect(finishResult(errorOf({ code: 7, message: 'no', data: 'd'.repeat(3000) }), limit).value()).toEqual({
      code: 7,
      message: 'no',
    })
  })
})
