// `node bench/bench.ts`: measures the cost of a call through Sallyport, compared with plain proxies and other programs.
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { cacheFolder, root } from './lib/folders.ts'
import { estimate, measure } from './measure.ts'
import { type Options, readOptions, usage } from './options.ts'
import { writeDocs } from './report/docs.ts'
import { toFigure } from './report/figure.ts'
import { toReport } from './report/text.ts'
import { Results } from './results.ts'

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1))

await main().catch((error: unknown) => {
  process.stderr.write(`bench: ${toText(error)}\n`)
  process.exitCode = 1
})

async function main(): Promise<void> {
  const options = tryOptions()
  if (!options) return
  const results = options.from === undefined ? await run(options) : await readResults(options.from)
  process.stdout.write(`${toReport(results)}\n`)
  if (options.from === undefined) await save(options.json ?? join(cacheFolder, 'results.json'), toJson(results))
  const figure = options.figure ?? (options.writeDocs ? join(root, 'docs', 'images', 'bench.svg') : undefined)
  if (figure !== undefined) await save(figure, toFigure(results))
  if (options.writeDocs) await writeDocs(results)
}

function tryOptions(): Options | undefined {
  try {
    return readOptions(process.argv.slice(2))
  } catch (error) {
    process.stderr.write(`bench: ${toText(error)}\n\n${usage}\n`)
    process.exitCode = 2
  }
}

async function run(options: Options): Promise<Results> {
  if (!existsSync(join(root, 'dist', 'cli.js'))) throw new Error('Sallyport is not built yet: run npm run build')
  const say = (line: string) => void process.stderr.write(`${line}\n`)
  say(`About ${Math.ceil(estimate(options))} minutes.`)
  return measure(options, say)
}

async function readResults(file: string): Promise<Results> {
  return Results.parse(JSON.parse(await readFile(file, 'utf8')))
}

function toJson(results: Results): string {
  return `${JSON.stringify(results, null, 2)}\n`
}

async function save(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, text)
  process.stderr.write(`wrote ${file}\n`)
}

/** The message with all causes: the cell, the target and the answer. */
function toText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${error.message}: ${toText(error.cause)}`
}
