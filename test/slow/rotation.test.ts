import { it } from 'vitest'
import { surviveKills } from '../secrets/rotating.ts'

it('a rotation that is killed fifty times leaves every secret open under exactly one key', () => surviveKills(50))
