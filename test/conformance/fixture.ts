import { startHttpFixture, stdioFixture } from '../fixtures/fixtures.ts'
import type { ConfigInput } from '../support/gateway.ts'

type Definition = NonNullable<ConfigInput['servers']>[string]

/** The server that the suite expects, as the gateway's configuration names it. */
export async function startConformanceServer(
  era: 'legacy' | 'modern',
  transport: 'stdio' | 'http',
): Promise<AsyncDisposable & { readonly definition: Definition }> {
  if (transport === 'stdio') {
    return { definition: stdioFixture('conformance', ['--era', era]), async [Symbol.asyncDispose]() {} }
  }
  const fixture = await startHttpFixture('conformance', ['--era', era, '--http', '--stdin-guard'])
  return {
    definition: { transport: 'http', url: fixture.url },
    [Symbol.asyncDispose]: () => fixture.stop(),
  }
}
