import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { bin } from './hosts.ts'
import { createFolder, until, writeConfig } from './support.ts'
import { hasTmux, openTerminal } from './terminal.ts'

it('serve asks at a terminal before it starts a program of mcp-servers.json', async ({ skip }) => {
  skip(!hasTmux, 'tmux is not installed')
  await using folder = await createFolder()
  const home = join(folder.path, 'home')
  const ran = join(folder.path, 'ran')
  await mkdir(home)
  const config = await writeConfig(folder.path, { listen: { port: 0 } })
  const evil = { command: process.execPath, args: ['-e', `require('fs').writeFileSync('${ran}','')`] }
  await writeFile(join(folder.path, 'mcp-servers.json'), JSON.stringify({ mcpServers: { evil } }))
  const data = join(folder.path, 'data')
  const command = `env HOME=${home} ${process.execPath} ${bin} serve --config ${config} --data ${data}`
  await using pane = await openTerminal(`sh -c 'cd ${folder.path} && exec ${command}'`)
  await pane.shows(/Start these programs with your rights/)
  expect(existsSync(ran)).toBe(false)
  await pane.press('y')
  await pane.shows(/Confirmed\./)
  await until(() => (existsSync(ran) ? true : undefined))
  await pane.press('C-c')
  await pane.shows(/ended with 0/)
})
