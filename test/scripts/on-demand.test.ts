import { readdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { installOnDemand } from '../../scripts/on-demand.ts'
import { temporaryFolder } from '../scenarios/mcp/raw.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

it('says which package the registry lacks, and leaves nothing that looks installed', async () => {
  await using folder = await temporaryFolder()
  const registry = createServer((_, response) => response.writeHead(404).end('{}'))
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
  const address = registry.address()
  const port = typeof address === 'object' && address ? address.port : 0
  vi.stubEnv('SALLYPORT_CACHE', folder.path)
  vi.stubEnv('npm_config_registry', `http://127.0.0.1:${port}/`)
  const attempt = installOnDemand({ name: '@nobody/nothing', version: '1.2.3' })
  await expect(attempt).rejects.toThrow(/could not install @nobody\/nothing@1\.2\.3:\n.*404/s)
  expect(await readdir(join(folder.path, 'packages'))).toEqual([])
  registry.close()
})
