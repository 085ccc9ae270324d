import { expect, it } from 'vitest'
import { editText } from '../../src/config/edit.ts'
import { parseConfig } from '../../src/config/read.ts'

function edited(file: string, text: string, edit: Parameters<typeof editText>[1]): string {
  const reading = parseConfig(file, text)
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems))
  return editText({ file, text, config: reading.config, value: reading.value }, edit)
}

const texts = {
  'a.yaml':
    '# ours\nprojects:\n  shop:\n    owners: [anna]\nagents:\n  till:\n    project: shop\nrules:\n  - { project: shop, action: ask } # kept\n',
  'a.json':
    '{\n  "projects": { "shop": { "owners": ["anna"] } },\n  "agents": { "till": { "project": "shop" } },\n  "rules": [{ "project": "shop", "action": "ask" }]\n}\n',
  'a.toml':
    '# ours\n[projects.shop]\nowners = ["anna"]\n\n[agents.till]\nproject = "shop"\n\n[[rules]]\nproject = "shop"\naction = "ask"\n',
}

it.each(Object.entries(texts))('renames a project with its agents and rules in %s', (file, text) => {
  const after = edited(file, text, { kind: 'rename-project', project: 'shop', to: 'store' })
  const reading = parseConfig(file, after)
  expect(after).not.toContain('shop')
  expect(reading).toMatchObject({
    ok: true,
    config: {
      projects: { store: { owners: ['anna'] } },
      agents: { till: { project: 'store' } },
      rules: [{ project: 'store' }],
    },
  })
})

it.each(Object.entries(texts))('adds a project and sets title and owners in %s', (file, text) => {
  const added = edited(file, text, { kind: 'add-project', project: 'bar', title: 'The bar', owners: ['ben'] })
  const owned = edited(file, added, { kind: 'set-owners', project: 'bar', owners: ['olga'] })
  const titled = edited(file, owned, { kind: 'set-title', project: 'bar', title: undefined })
  expect(parseConfig(file, titled)).toMatchObject({ config: { projects: { shop: {}, bar: { owners: ['olga'] } } } })
  expect(titled).not.toContain('The bar')
})

it('refuses names that are taken or unknown', () => {
  const text = texts['a.yaml']
  expect(() => edited('a.yaml', text, { kind: 'add-project', project: 'shop', owners: [] })).toThrow('exists already')
  expect(() => edited('a.yaml', text, { kind: 'rename-project', project: 'bar', to: 'foo' })).toThrow('No project')
  expect(() => edited('a.yaml', text, { kind: 'set-title', project: 'bar', title: 'x' })).toThrow('No project')
})
