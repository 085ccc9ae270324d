/** How every command ends; scripts decide by these. */
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
  /** As shells do for a program that Ctrl+C ended. */
  interrupted: 130,
} as const
