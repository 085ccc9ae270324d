import { isContractProcedure } from '@orpc/contract'
import { expect, it } from 'vitest'
import { api } from '../../src/contract/api.ts'
import { access } from '../../src/http/api-access.ts'

/** Every endpoint by its place in the contract. */
function listOperations(part: object, path: readonly string[] = []): string[] {
  if (isContractProcedure(part)) return [path.join('.')]
  return Object.entries(part).flatMap(([name, inner]) => listOperations(inner, [...path, name]))
}

it('says of every endpoint who may use it, and of nothing else', () => {
  expect(Object.keys(access).sort()).toEqual(listOperations(api).sort())
})
