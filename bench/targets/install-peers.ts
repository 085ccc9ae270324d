import { installOnDemand, onDemandPath } from '../../scripts/on-demand.ts'

/** Exact versions of the peers, with the script that `npx` would run. */
const peers = {
  'mcp-hub': { version: '4.2.1', script: 'dist/cli.js' },
  'mcp-proxy': { version: '6.7.19', script: 'dist/bin/mcp-proxy.mjs' },
  supergateway: { version: '4.0.0', script: 'dist/index.js' },
} as const

export type PeerName = keyof typeof peers
export const peerNames: readonly string[] = Object.keys(peers)
export const peerVersions: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(peers).map(([name, { version }]) => [name, version]),
)

export function peerScript(name: PeerName): string {
  const { version, script } = peers[name]
  return onDemandPath({ name, version }, name, script)
}

export async function installPeers(): Promise<void> {
  for (const [name, { version }] of Object.entries(peers)) await installOnDemand({ name, version })
}
