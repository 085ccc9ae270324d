export const browserPackage: { readonly name: string; readonly version: string }
export function packagedFolder(env?: NodeJS.ProcessEnv): string
export function findBrowser(env?: NodeJS.ProcessEnv, exists?: (path: string) => boolean): string | undefined
export function wantsBrowser(words: readonly string[]): boolean
export function browserNote(
  words: readonly string[],
  env?: NodeJS.ProcessEnv,
  exists?: (path: string) => boolean,
): string | undefined
