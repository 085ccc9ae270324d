/** The result of one check. `fix` is a command or an edit. */
export type Finding = {
  readonly check: string
  readonly status: 'ok' | 'note' | 'warning' | 'problem'
  readonly message: string
  readonly fix: string | null
}

export function ok(check: string, message: string): Finding {
  return { check, status: 'ok', message, fix: null }
}

export function note(check: string, message: string, fix: string | null = null): Finding {
  return { check, status: 'note', message, fix }
}

export function warning(check: string, message: string, fix: string): Finding {
  return { check, status: 'warning', message, fix }
}

export function problem(check: string, message: string, fix: string): Finding {
  return { check, status: 'problem', message, fix }
}

/** The system's error code, such as ENOENT. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
