import { z } from 'zod'
import type { Client } from '../../client/client.ts'

/** The fields of a result that say how much of its text was cut because of its length. */
const Cut = z.looseObject({
  content: z
    .array(
      z.looseObject({
        type: z.string(),
        text: z.string().optional(),
        resource: z.looseObject({ text: z.string().optional() }).optional(),
      }),
    )
    .default([]),
  _meta: z.looseObject({
    'sallyport/cut': z.object({ handle: z.string(), offset: z.number() }).optional(),
    'sallyport/left-out': z.object({ handle: z.string(), parts: z.number().optional() }).optional(),
  }),
})
type Cut = z.infer<typeof Cut>

const noteOf = /^\[left out by Sallyport: /

/** The command that reads the missing part of a cut result; undefined if nothing is missing. */
export function restOf(result: unknown): string | undefined {
  const meta = Cut.safeParse(result).data?._meta
  const missing = meta?.['sallyport/cut'] ?? meta?.['sallyport/left-out']
  if (!missing) return undefined
  const given = { handle: missing.handle, offset: 'offset' in missing ? missing.offset : 0 }
  return `sallyport tools call sallyport_read_result --args '${JSON.stringify(given)}'`
}

/** The complete result, with the parts that were cut. */
export async function readWhole(client: Client, result: unknown): Promise<unknown> {
  const cut = Cut.safeParse(result).data
  if (!cut) return result
  const { 'sallyport/cut': text, 'sallyport/left-out': leftOut, ..._meta } = cut._meta
  if (leftOut && leftOut.parts === undefined) return JSON.parse(await readAll(client, leftOut.handle))
  const parts = leftOut ? z.array(z.unknown()).parse(JSON.parse(await readAll(client, leftOut.handle))) : []
  const whole = text && (await readAll(client, text.handle))
  return { ...cut, content: [...toContent(cut, whole), ...parts], _meta }
}

/** Replaces cut text by the whole text in one part; other parts stay. */
function toContent({ content }: Cut, whole: string | undefined): unknown[] {
  const others = content.filter(({ text = '' }) => !noteOf.test(text))
  if (whole === undefined) return others
  const withoutText = others.filter(({ text, resource }) => (text ?? resource?.text) === undefined)
  return [{ type: 'text', text: whole }, ...withoutText]
}

async function readAll(client: Client, handle: string): Promise<string> {
  let text = ''
  let next: number | null = 0
  while (next !== null) {
    const page: Awaited<ReturnType<Client['results']['get']>> = await client.results.get({
      params: { handle },
      query: { offset: next },
    })
    text += page.text
    next = page.next
  }
  return text
}
