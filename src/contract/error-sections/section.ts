import type { ErrorCode } from '../error-table.ts'

/** The section of one error code in the docs. Backticks mark code; there is no other markup. */
export type ErrorSection = {
  /** What the error means and when it occurs. Lists show the first sentence alone. */
  readonly meaning: string
  /** A message as people see it. */
  readonly example?: string
  /** What to do: each entry is one thing to try. */
  readonly steps: readonly [string, ...string[]]
  /** The part of `docs/guide` that covers it. */
  readonly guide: GuideLink
  /** The numbers of the table that people can see, if not all three. An error of a command has an exit code only. */
  readonly numbers?: readonly NumberName[]
}

export type NumberName = 'http' | 'rpc' | 'exit'

export type ErrorSections = Partial<Readonly<Record<ErrorCode, ErrorSection>>>

/** The pages of `docs/guide` that sections link to, with their titles. */
export const guidePages = {
  'agents.md': 'Connecting agents',
  'approvals.md': 'Approvals and grants',
  'command-line.md': 'The command line',
  'gallery.md': 'The gallery',
  'import.md': 'Importing servers',
  'people.md': 'People, agents and sessions',
  'pinning.md': 'Pinned definitions',
  'record.md': 'The record, and how to verify it',
  'results.md': 'Results',
  'rules.md': 'Risk and rules',
  'running.md': 'Running a gateway',
  'secrets.md': 'Secrets',
  'servers.md': 'Servers',
  'teams.md': 'Teams: servers of projects and users',
  'troubleshooting-servers.md': 'Troubleshooting servers',
  'upgrading.md': 'Upgrading and uninstalling',
  'webhooks.md': 'Webhooks',
} as const

type GuidePage = keyof typeof guidePages
export type GuideLink = GuidePage | `${GuidePage}#${string}`

/** `Approvals and grants` for `approvals.md#grants`. */
export function toGuideTitle(link: GuideLink): string {
  const found = Object.entries(guidePages).find(([file]) => link.split('#', 1)[0] === file)
  return found?.[1] ?? link
}
