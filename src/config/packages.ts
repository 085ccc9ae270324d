import type { ScopedServer } from '../contract/config.ts'

/** Programs that download and run a package: how they write a version, and which options take a value. */
const runners: Readonly<
  Record<string, { readonly version: RegExp; readonly takes: readonly string[]; readonly names: readonly string[] }>
> = {
  npx: { version: /.@\d+\.\d+\.\d+/, takes: ['-w', '--workspace'], names: ['-p', '--package'] },
  bunx: { version: /.@\d+\.\d+\.\d+/, takes: [], names: ['-p', '--package'] },
  uvx: {
    version: /.(==|@)\d+(\.\d+)+/,
    takes: ['-p', '--python', '--index-url', '--index'],
    names: ['--from', '--with'],
  },
}

/** The package of a command that runs the latest published version; undefined if a version is given. */
export function findUnpinned({ command = '', args = [] }: Pick<ScopedServer, 'command' | 'args'>): string | undefined {
  const runner = runners[command.replace(/^.*[\\/]/, '').replace(/\.(cmd|exe)$/i, '')]
  if (runner === undefined) return undefined
  return listPackages(args, runner).find((name) => !runner.version.test(name) && !isElsewhere(name))
}

/** Whether the name is a file, an address or a template: then no registry chooses a version. */
function isElsewhere(name: string): boolean {
  return /^[./~]|:|\$\{/.test(name)
}

function listPackages(args: readonly string[], { takes, names }: (typeof runners)[string]): string[] {
  const named: string[] = []
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? ''
    const [option = '', value] = arg.split(/=(.*)/s)
    if (!arg.startsWith('-')) return named.length > 0 ? named : [arg]
    if (names.includes(option)) named.push(value ?? args[++index] ?? '')
    else if (takes.includes(option) && value === undefined) index++
  }
  return named
}
