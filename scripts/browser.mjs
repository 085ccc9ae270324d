// Finds the browser for the tests. Plain JavaScript for Node 20, because it runs before the installation.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './install.mjs'

/**
 * The last lines of `npm test` if browser tests were selected but no browser was found; else undefined.
 * @param {readonly string[]} words arguments for vitest
 * @param {NodeJS.ProcessEnv} env
 * @param {(path: string) => boolean} exists
 */
export function browserNote(words, env = process.env, exists = existsSync) {
  const usual = JSON.parse(readFileSync(join(root, 'test', 'web', 'browsers.json'), 'utf8'))
  const named = env.SALLYPORT_CHROMIUM
  if (named ? exists(named) : usual.some(exists)) return undefined
  const isAgents = words.some((word) => word.includes('test/agents'))
  const chosen = words.filter(
    (word, at) => !word.startsWith('-') && words[at - 1] !== '--config' && words[at - 1] !== '-t',
  )
  if (isAgents || (chosen.length > 0 && !chosen.some((word) => word.includes('web')))) return undefined
  const missing = named ? `${named} does not exist` : 'no Chromium was found'
  return [
    `sallyport: THE BROWSER TESTS DID NOT RUN: ${missing}.`,
    'Install Chromium, or set SALLYPORT_CHROMIUM to the path of a Chromium, and run the tests again.',
  ].join('\n')
}
