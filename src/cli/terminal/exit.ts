/** Exit codes of all commands. Scripts depend on them. */
export const exit = {
  done: 0,
  failed: 1,
  usage: 2,
  signInNeeded: 3,
  unreachable: 4,
  toolFailed: 5,
  denied: 6,
  waiting: 7,
  notConnected: 8,
  /** The code that shells use for a program ended by Ctrl+C. */
  interrupted: 130,
} as const
