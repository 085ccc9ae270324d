import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { shortCells } from '../../bench/cells.ts'
import { Results } from '../../bench/results.ts'

const bench = fileURLToPath(new URL('../../bench/bench.ts', import.meta.url))
const run = promisify(execFile)

it('gets every answer whole through the gateway, in every cell of the short form', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'bench-'))
  const [json, figure] = [join(folder, 'results.json'), join(folder, 'bench.svg')]
  try {
    const { stdout } = await run(process.execPath, [bench, '--short', '--json', json, '--figure', figure])
    const { cells } = Results.parse(JSON.parse(await readFile(json, 'utf8')))
    expect(cells.map(({ cell }) => cell.name).sort()).toEqual(shortCells.map(({ name }) => name).sort())
    for (const { cell, yardstick, targets, leftOut } of cells) {
      const variants = cell.stage === 'json' ? ['sallyport-pg'] : []
      expect(Object.keys(targets).sort(), cell.name).toEqual(['direct', yardstick, 'sallyport', ...variants].sort())
      for (const { calls } of Object.values(targets)) expect(calls, cell.name).toBeGreaterThanOrEqual(cell.inFlight)
      expect(leftOut).toEqual({})
      expect(stdout).toContain(cell.name)
    }
    expect(await readFile(figure, 'utf8')).toMatch(/^<svg [\s\S]*sallyport[\s\S]*<\/svg>\n$/)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
