import { type ConfigProblem, findConfigFile, formatProblem, readConfig } from '../../../config/config.ts'
import type { Config } from '../../../contract/config.ts'
import { toGatewayError } from '../../../contract/errors.ts'
import { type Finding, note, ok, problem } from './finding.ts'

export type FoundConfig = { readonly file: string | undefined; readonly config?: Config; readonly findings: Finding[] }

/** Checks the file that the running gateway uses, else the file that `serve` would use. */
export async function checkConfiguration(explicit: string | undefined, dataFolder: string): Promise<FoundConfig> {
  const file = findConfigFile({ explicit, environment: process.env, cwd: process.cwd(), dataFolder })
  if (file === undefined) {
    const message = 'The current folder has no configuration file; the first start writes one'
    return { file, findings: [note('configuration', message, 'sallyport serve --demo')] }
  }
  try {
    const reading = await readConfig(file)
    if (!reading.ok) return { file, findings: reading.problems.map(toFinding) }
    const notices = reading.notices(Date.now()).map((notice) => note('configuration', formatProblem(notice)))
    return { file, config: reading.config, findings: [ok('configuration', `${file} is valid`), ...notices] }
  } catch (error) {
    const fix = `Create it, or name another one: sallyport serve --config FILE`
    return { file, findings: [problem('configuration', toGatewayError(error).message, fix)] }
  }
}

function toFinding(found: ConfigProblem): Finding {
  const place = `${found.file}:${found.line}`
  return problem('configuration', formatProblem(found), `Correct ${place}, then: sallyport config check ${found.file}`)
}
