import { expect, it } from 'vitest'
import { formatProblem, toSettings } from '../../src/config/config.ts'
import { connections } from '../../src/config/scopes.ts'
import { Config } from '../../src/contract/config.ts'
import type { AcceptedFile } from '../../src/storage/tables/accepted-files.ts'
import { problemsOf } from './support.ts'

const linesOf = (text: string) => problemsOf('x.yaml', text).map(formatProblem)
const roster = { agents: [], sessions: [] }

it('takes only an absolute path and a relative file, without .. in either', () => {
  const text = (path: string, file: string) => `projects: { shop: { repository: { path: ${path}, file: ${file} } } }\n`
  expect(linesOf(text('/srv/shop', '.vscode/mcp.json'))).toEqual([])
  for (const path of ['shop', './shop', '/srv/../etc', '/srv/shop/..']) {
    expect(linesOf(text(path, 'a.json'))[0]).toMatch(/^x.yaml:1: projects.shop.repository.path: must /)
  }
  for (const file of ['/etc/a.json', '../a.json', 'a/../../b.json', '"\\\\\\\\host\\\\a.json"', 'C:/a.json', '""']) {
    expect(linesOf(text('/srv/shop', file))[0]).toMatch(/^x.yaml:1: projects.shop.repository.file: /)
  }
})

it('is valid whatever the repository contains: a toolset may name a server that is not accepted yet', () => {
  const toolset = 'toolsets: { docs: { servers: [wiki] } }\n'
  expect(linesOf(toolset)[0]).toContain('no server is named wiki')
  expect(linesOf(`${toolset}projects: { shop: { repository: { path: /srv/shop } } }\n`)).toEqual([])
})

it('lets rules of a project with a repository only be stricter', () => {
  const text = 'projects: { shop: { repository: { path: /srv }, rules: [{ action: ask, approvers: client }] } }\n'
  expect(linesOf(text)[0]).toContain('project:shop has owners or a repository')
})

it('gives accepted servers to the project, folder and file that they were accepted for, and to no other', () => {
  const accepted: AcceptedFile = {
    scope: 'project:shop',
    folder: '/srv/shop',
    file: '.mcp.json',
    hash: '',
    servers: { wiki: { transport: 'http', url: 'https://wiki.example.com/mcp' } },
    by: 'user:ada',
    at: 0,
  }
  const idsOf = (config: object) =>
    connections(toSettings(Config.parse(config), roster, { accepted: [accepted] })).map(
      ({ id, trusted }) => `${id} ${trusted}`,
    )
  const repository = { path: '/srv/shop' }
  expect(idsOf({ projects: { shop: { repository } } })).toEqual(['wiki@project:shop false'])
  expect(idsOf({ projects: { shop: {} } })).toEqual([])
  expect(idsOf({ projects: { other: { repository } } })).toEqual([])
  expect(idsOf({ projects: { shop: { repository: { path: '/srv/shop/' } } } })).toEqual([])
  expect(idsOf({ projects: { shop: { repository: { ...repository, file: 'a.json' } } } })).toEqual([])
  const wiki = { transport: 'http', url: 'https://other.example.com/mcp' }
  expect(idsOf({ servers: { wiki }, projects: { shop: { repository } } })).toEqual(['wiki true'])
  const own = toSettings(Config.parse({ projects: { shop: { repository, servers: { wiki } } } }), roster, {
    accepted: [accepted],
  })
  expect(own.projects.shop?.servers.wiki).toMatchObject(wiki)
})
