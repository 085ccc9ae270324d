// Finds the browser for the tests. Plain JavaScript for Node 20, because it runs before the installation.
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { root } from './install.mjs'

/** A package that contains Chromium for Linux on x64. It is used where no browser is installed. */
export const browserPackage = { name: '@sparticuz/chromium', version: '153.0.0' }

/** The folder with the unpacked browser of that package, its libraries and its fonts. */
export function packagedFolder(env = process.env) {
  return join(env.SALLYPORT_CACHE ?? join(homedir(), '.cache', 'sallyport'), 'browsers', browserPackage.version)
}

/**
 * The browser to use: the one that SALLYPORT_CHROMIUM names, else one that is installed, else the unpacked one.
 * @param {NodeJS.ProcessEnv} env
 * @param {(path: string) => boolean} exists
 * @returns {string | undefined}
 */
export function findBrowser(env = process.env, exists = existsSync) {
  const named = env.SALLYPORT_CHROMIUM
  if (named) return exists(named) ? named : undefined
  const usual = JSON.parse(readFileSync(join(root, 'test', 'web', 'browsers.json'), 'utf8'))
  return [...usual, join(packagedFolder(env), 'chromium')].find(exists)
}

/**
 * Whether the browser tests are among the tests to run.
 * @param {readonly string[]} words arguments for vitest
 */
export function wantsBrowser(words) {
  if (words.some((word) => word.includes('test/agents'))) return false
  const chosen = words.filter(
    (word, at) => !word.startsWith('-') && words[at - 1] !== '--config' && words[at - 1] !== '-t',
  )
  return chosen.length === 0 || chosen.some((word) => word.includes('web'))
}

/**
 * The last lines of `npm test` if browser tests were selected but no browser was found; else undefined.
 * @param {readonly string[]} words arguments for vitest
 * @param {NodeJS.ProcessEnv} env
 * @param {(path: string) => boolean} exists
 */
export function browserNote(words, env = process.env, exists = existsSync) {
  if (findBrowser(env, exists) || !wantsBrowser(words)) return undefined
  const named = env.SALLYPORT_CHROMIUM
  const missing = named ? `${named} does not exist` : 'no Chromium was found'
  return [
    `sallyport: THE BROWSER TESTS DID NOT RUN: ${missing}.`,
    'Install Chromium, or set SALLYPORT_CHROMIUM to the path of a Chromium, and run the tests again.',
  ].join('\n')
}
