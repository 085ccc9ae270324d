const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EEXIST: 'it already exists',
  EISDIR: 'it is a folder',
  ENOTDIR: 'it is not a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EIO: 'the disk reports an error',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
  SQLITE_FULL: 'the disk is full',
  SQLITE_READONLY: 'it is read-only',
  SQLITE_CANTOPEN: 'it cannot be opened',
  SQLITE_PERM: 'permission denied',
  SQLITE_IOERR: 'the disk reports an error',
  SQLITE_CORRUPT: 'the file is damaged',
  SQLITE_NOTADB: 'the file is damaged or not a database',
  SQLITE_BUSY: 'another program is using it',
  SQLITE_LOCKED: 'another program is using it',
}

/** The short code of an error of the system or of SQLite, such as ENOSPC; undefined for any other error. */
export function findSystemCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return findWords(code) === undefined ? undefined : code
}

/** `the disk is full (ENOSPC)`; for an unknown code the message and the code, for an error without a code the message. */
export function toSystemReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? String(error.code) : undefined
  const words = code === undefined ? undefined : findWords(code)
  if (words !== undefined) return `${words} (${code})`
  return code === undefined ? error.message : `${error.message} (${code})`
}

/** SQLite adds further words to its codes, such as SQLITE_IOERR_WRITE, so the first two words are compared. */
function findWords(code: string): string | undefined {
  return reasons[code] ?? reasons[code.split('_').slice(0, 2).join('_')]
}
