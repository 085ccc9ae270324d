import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/contract/principal.ts'
import { changeFile, databases, placeOn } from '../../storage/support.ts'
import { administrator, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { startListener } from '../teams/support.ts'

const suffixed = /_0[0-9a-v]{12}$/

/** A server that offers these tools. */
const offering = (...names: string[]) =>
  startListener(() => names.map((name) => ({ name, inputSchema: { type: 'object' } })))

const tester: Principal = { kind: 'agent', name: 'tester' }
const place = (url: string) => ({ transport: 'http' as const, url })

/** The public names of the tools, by server and the tool's own name. */
function namesOf({ gateway }: TestGateway, principal = tester): Record<string, string> {
  const tools = gateway.catalog.listTools(principal, { kind: 'all' })
  return Object.fromEntries(tools.map(({ server, original, name }) => [`${server}/${original}`, name]))
}

const add = ({ gateway }: TestGateway, name: string, url: string) =>
  gateway.servers.add(administrator, { name, definition: place(url) })
const remove = ({ gateway }: TestGateway, name: string) => gateway.servers.remove(administrator, name)

describe.each(databases)('on %s', (kind) => {
  it('names stay with their tools, whatever servers come, go and come back, also after a restart', async () => {
    await using one = await offering('c')
    await using other = await offering('b_c')
    const options = await placeOn(kind)
    const first = await startTestGateway({}, options)
    const added = await add(first, 'a_b', one.url)
    expect(added.tools).toMatchObject([{ name: 'a_b_c' }])
    await add(first, 'a', other.url)
    const before = namesOf(first)
    expect(before).toEqual({ 'a_b/c': 'a_b_c', 'a/b_c': expect.stringMatching(suffixed) })

    await remove(first, 'a_b')
    await first.gateway.rules.set(administrator, 'global', [{ tools: 'a_b_c', action: 'allow', approvers: 'any' }])
    await remove(first, 'a')
    await add(first, 'a', other.url)
    expect(namesOf(first)).toEqual({ 'a/b_c': before['a/b_c'] })
    await first.close()

    await using second = await startTestGateway({ servers: { a: place(other.url) } }, options)
    await poll(() => (namesOf(second)['a/b_c'] === before['a/b_c'] ? true : undefined))
    await add(second, 'a_b', one.url)
    expect(namesOf(second)).toEqual(before)
  })
})

it('names follow the pattern, and `mcp_{server}_{tool}` adds no suffix because of an underscore', async () => {
  await using search = await offering('search')
  await using browser = await offering('browser_click', 'browser', 'browser-type')
  const servers = { web_search: place(search.url), browser: place(browser.url) }
  await using test = await startTestGateway({ servers, naming: 'mcp_{server}_{tool}' })
  expect(namesOf(test)).toEqual({
    'web_search/search': 'mcp_web_search_search',
    'browser/browser': 'mcp_browser_browser',
    'browser/browser-type': 'mcp_browser_type',
    'browser/browser_click': 'mcp_browser_click',
  })
  await test.writeConfig({ servers })
  await poll(() => (Object.values(namesOf(test)).includes('web_search_search') ? true : undefined))
  expect(Object.values(namesOf(test)).toSorted()).toEqual([
    'browser_browser',
    'browser_click',
    'browser_type',
    'web_search_search',
  ])
})

describe('a member', () => {
  const members = { egress: { allow: ['127.0.0.1'] }, members: { hosts: ['127.0.0.1'] }, limits: { hold: 0 } }
  const anna: Principal = { kind: 'user', name: 'anna', role: 'member', person: true }
  const helper: Principal = { kind: 'agent', name: 'helper', owner: 'anna' }
  const addOwn = ({ gateway }: TestGateway, name: string, url: string) =>
    gateway.servers.add(anna, { name, scope: 'user:anna', definition: place(url) })
  const callAs = async ({ gateway }: TestGateway, name: string) => {
    const call = { principal: helper, surface: 'library', selector: { kind: 'all' }, name, arguments: {} } as const
    const outcome = await gateway.calls.run(call, { signal: AbortSignal.timeout(30_000) })
    return outcome.kind === 'refused' ? outcome.error.code : outcome.kind
  }

  it('cannot give an own tool a name that a rule of administrators allows', async () => {
    await using evil = await offering('hub_delete', 'other')
    const rules = [{ tools: 'git_hub_delete', action: 'allow' as const }]
    await using test = await startTestGateway({ ...members, rules })
    await addOwn(test, 'git', evil.url)
    const names = namesOf(test, helper)
    expect(names).toEqual({ 'git/hub_delete': expect.stringMatching(suffixed), 'git/other': 'git_other' })
    expect(await callAs(test, 'git_hub_delete')).toBe('tool-not-found')
    expect(await callAs(test, names['git/hub_delete'] ?? '')).toBe('waiting')
    expect(evil.calls()).toBe(0)
  })

  it('cannot avoid a rule that denies a name', async () => {
    await using own = await offering('delete')
    await using test = await startTestGateway({ ...members, rules: [{ tools: 'notes_delete', action: 'deny' }] })
    await addOwn(test, 'notes', own.url)
    expect(namesOf(test, helper)).toEqual({ 'notes/delete': 'notes_delete' })
    expect(await callAs(test, 'notes_delete')).toBe('call-denied')
  })

  it('cannot keep a name from the server of an administrator by taking it first', async () => {
    await using evil = await offering('hub_delete')
    await using good = await offering('delete')
    await using test = await startTestGateway(members)
    await addOwn(test, 'git', evil.url)
    expect(namesOf(test, helper)).toEqual({ 'git/hub_delete': 'git_hub_delete' })
    const added = await add(test, 'git_hub', good.url)
    expect(added.tools).toMatchObject([{ name: 'git_hub_delete' }])
    await test.gateway.rules.set(administrator, 'global', [{ tools: 'git_hub_*', action: 'allow', approvers: 'any' }])
    await poll(() => (Object.keys(namesOf(test, helper)).length === 2 ? true : undefined))
    const names = namesOf(test, helper)
    expect(names).toMatchObject({ 'git_hub/delete': 'git_hub_delete' })
    expect(names['git/hub_delete']).toMatch(/^own-git_hub_delete_0/)
    expect(await callAs(test, 'git_hub_delete')).toBe('answered')
    expect(await callAs(test, names['git/hub_delete'] ?? '')).toBe('waiting')
    expect([evil.calls(), good.calls()]).toEqual([0, 1])
  })

  it('keeps the names of tools for as long as the account exists, and a new user of that name gets none of them', async () => {
    await using own = await offering('read')
    await using test = await startTestGateway(members)
    const { gateway } = test
    const password = 'a long enough password'
    await gateway.users.add(administrator, { name: 'root', role: 'administrator', password })
    await gateway.users.add(administrator, { name: 'anna', role: 'member', password })
    await addOwn(test, 'notes', own.url)
    expect(Object.values(namesOf(test, helper))).toEqual(['notes_read'])
    await gateway.removal.remove(administrator, 'user', 'anna')
    await gateway.users.add(administrator, { name: 'anna', role: 'member', password })
    await addOwn(test, 'notes', own.url)
    expect(Object.values(namesOf(test, helper))).toEqual(['notes_read'])
  })
})

it('keeps names of an earlier version where a rule contains them, and gives the others their new names', async () => {
  await using files = await offering('read', 'write')
  await using rival = await offering('files_write')
  const options = await placeOn('SQLite')
  const servers = { my_files: place(files.url), my: place(rival.url) }
  const first = await startTestGateway({ servers }, options)
  await first.close()
  // Before names were stored, an underscore in the name of the server gave every tool a suffix.
  const earlier = 'my_files_read_0mdkd6pkq75l7'
  changeFile(`${options.folder}/data`, 'delete from tool_names')
  const rules = [{ tools: earlier, action: 'allow' as const }]
  await using second = await startTestGateway({ servers, rules }, options)
  expect(namesOf(second)).toEqual({
    'my_files/read': earlier,
    'my_files/write': expect.stringMatching(suffixed),
    'my/files_write': 'my_files_write',
  })
})
