import { expect, it } from 'vitest'
import { readServers } from '../../src/repositories/read.ts'

it.each(['a: | SECRETVALUE123', '!SECRETVALUE123 a', '%SECRETVALUE123\n---\na: 1', 'a: >9SECRETVALUE123'])(
  'says that %s is not valid without quoting the file, because it may contain a secret',
  (text) => {
    const found = readServers('servers.yaml', Buffer.from(text))
    expect(found.ok).toBe(false)
    expect(JSON.stringify(found)).not.toContain('SECRETVALUE123')
  },
)
