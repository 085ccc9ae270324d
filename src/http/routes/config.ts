import { implement } from '@orpc/server'
import { formatProblem } from '../../config/config.ts'
import { api } from '../../contract/api.ts'
import type { Principal } from '../../contract/principal.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { ApiContext } from './context.ts'

export function createConfigRoutes(gateway: Gateway) {
  const on = implement(api.config).$context<ApiContext>()
  return on.router({
    show: on.show.handler(() => ({
      file: gateway.config.file,
      config: gateway.config.current(),
      problems: gateway.config.rejected().map(formatProblem),
    })),
    effective: on.effective.handler(({ input, context }) => {
      const seen: Principal = input.agent === undefined ? context.principal : { kind: 'agent', name: input.agent }
      const servers = [...gateway.config.effective(seen).servers.values()]
      return {
        servers: servers.map(({ name, scope, definition, origins }) => ({ name, scope, definition, origins })),
      }
    }),
  })
}
