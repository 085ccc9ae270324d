import { isContractProcedure } from '@orpc/contract'
import { expect, it } from 'vitest'
import { api } from '../../src/contract/api.ts'
import { toEndpointMeta } from '../../src/http/api-access.ts'

type Endpoint = { readonly name: string; readonly callers: readonly string[] }

/** Every endpoint by its place in the contract. */
function listEndpoints(part: object, path: readonly string[] = []): Endpoint[] {
  if (isContractProcedure(part)) return [{ name: path.join('.'), ...toEndpointMeta(part['~orpc'].meta) }]
  return Object.entries(part).flatMap(([name, inner]) => listEndpoints(inner, [...path, name]))
}

it('says of every endpoint who may use it', () => {
  const endpoints = listEndpoints(api)
  expect(endpoints.length).toBeGreaterThan(70)
  expect(endpoints.filter(({ callers }) => callers.length === 0)).toEqual([])
})

it('lets nobody use an endpoint that says nothing', () => {
  expect(toEndpointMeta({})).toEqual({ callers: [] })
})
