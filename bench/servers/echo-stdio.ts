// The echo server on standard input and output. It ends when its input ends.

import { createLines } from '../lib/lines.ts'
import { createAnswers, echoTools } from './answers.ts'

const answers = createAnswers(echoTools)
const newline = Buffer.from('\n')
let pending: Buffer[] = []

const lines = createLines((line) => {
  const pieces = answers(line.toString())
  if (pieces) pending.push(...pieces, newline)
})

process.stdin.on('data', (chunk: Buffer) => {
  lines.push(chunk)
  if (pending.length === 0) return
  process.stdout.write(Buffer.concat(pending)) // one write for all messages of one read
  pending = []
})
process.stdin.on('end', () => process.exit(0))
process.stdout.on('error', () => process.exit(0))
