import { parseTemplate } from '../config/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { GalleryConnection, GalleryEntry, PlannedVariable } from '../contract/gallery.ts'
import { ServerDefinition } from '../contract/server.ts'

/** What an entry of the gallery and a server of a registry have in common. */
export type Fillable = Pick<GalleryEntry, 'title' | 'purpose' | 'connections' | 'risk'> & {
  readonly id: string
  readonly trust?: ServerDefinition['trust']
}

export type Filling = {
  readonly entry: Fillable
  readonly connection: GalleryConnection
  readonly variables: readonly PlannedVariable[]
  /** The values of variables that are not secrets. */
  readonly values: Readonly<Record<string, string>>
  /** Whether suggested risks may be written that are lower than `danger`. */
  readonly mayChooseRisk: boolean
}

/** The definition to save. Values are written into it; secrets and listed environment variables stay `${NAME}`. */
export function fill(filling: Filling): ServerDefinition {
  const { entry, connection } = filling
  const parsed = ServerDefinition.safeParse({
    ...fillTransport(filling),
    title: entry.title,
    description: entry.purpose,
    ...(entry.trust && { trust: entry.trust }),
    ...toRisks(filling),
  })
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')
  throw new GatewayError('request-invalid', `${entry.title} (${connection.id}): ${problems}`)
}

function fillTransport(filling: Filling): object {
  const { connection } = filling
  if (connection.transport === 'stdio') {
    return {
      transport: 'stdio',
      command: connection.command,
      args: connection.args.flatMap((text) => fillText(filling, text, demandNoOption) ?? []),
      env: fillAll(filling, connection.env),
    }
  }
  const url = fillText(filling, connection.url, demandPartOfAddress)
  return { transport: connection.transport, url, headers: fillAll(filling, connection.headers) }
}

function fillAll(filling: Filling, texts: Readonly<Record<string, string>>): Record<string, string> {
  const filled = Object.entries(texts).map(([name, text]) => [name, fillText(filling, text)] as const)
  return Object.fromEntries(filled.filter((pair): pair is [string, string] => pair[1] !== undefined))
}

type Check = (name: string, value: string, isWhole: boolean) => void

/** Undefined if the text needs an optional value that is missing. */
function fillText({ variables, values }: Filling, text: string, check?: Check): string | undefined {
  const template = parseTemplate(text)
  if (!template.ok) throw new GatewayError('config-invalid', `A gallery entry ${template.message}`)
  const texts: string[] = []
  for (const piece of template.pieces) {
    const variable = piece.kind === 'variable' ? variables.find(({ name }) => name === piece.name) : undefined
    if (piece.kind === 'text') texts.push(toLiteral(piece.text))
    else if (variable?.state === 'unset' || variable?.state === 'refused') return undefined
    else {
      const value = variable === undefined || variable.secret ? undefined : toValue(variable, values)
      if (value !== undefined) demandText(piece.name, value)
      if (value !== undefined) check?.(piece.name, value, text === `\${${piece.name}}`)
      texts.push(value ?? `\${${piece.name}}`)
    }
  }
  return texts.join('')
}

function toValue(variable: PlannedVariable, values: Readonly<Record<string, string>>): string | undefined {
  if (variable.state === 'given') return values[variable.name]
  return variable.state === 'default' ? variable.default : undefined
}

function toLiteral(text: string): string {
  return text.replaceAll('${', () => '$${') // a string would be a pattern in which $$ is one $
}

/** A value must not become a template that reads another secret, alone or together with the text after it. */
function demandText(name: string, value: string): void {
  if (!value.includes('${') && !value.endsWith('$')) return
  throw new GatewayError('request-invalid', `${name}: must not contain \${ or end with $`)
}

/** Such a value would be an option of the program instead of a value. */
function demandNoOption(name: string, value: string, isWhole: boolean): void {
  if (isWhole && value.startsWith('-')) throw new GatewayError('request-invalid', `${name}: must not begin with -`)
}

/** A value inside an address must not change the host or the path around it. */
function demandPartOfAddress(name: string, value: string, isWhole: boolean): void {
  if (isWhole || /^[A-Za-z0-9._~:-]+$/.test(value)) return
  throw new GatewayError('request-invalid', `${name}: must contain only letters, digits and . _ ~ : -`)
}

/** Users who may only raise risks get only the suggestions `danger`. */
function toRisks({ entry: { risk }, mayChooseRisk }: Filling): object {
  const isAllowed = (suggested: string | undefined) =>
    suggested !== undefined && (mayChooseRisk || suggested === 'danger')
  const tools = Object.entries(risk.tools).filter(([, suggested]) => isAllowed(suggested))
  return {
    ...(isAllowed(risk.default) && { defaultRisk: risk.default }),
    ...(tools.length > 0 && {
      tools: { override: Object.fromEntries(tools.map(([name, suggested]) => [name, { risk: suggested }])) },
    }),
  }
}
