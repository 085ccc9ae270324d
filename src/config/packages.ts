import type { ScopedServer } from '../contract/config.ts'

/** Programs that fetch a package and run it: how they write a version, and which of their options take a value. */
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

/** The package of a command that runs whatever was published last; undefined where the version is written out. */
export function findUnpinned({ command = '', args = [] }: Pick<ScopedServer, 'command' | 'args'>): string | undefined {
  const runner = runners[command.replace(/^.*[\\/]/, '').replace(/\.(cmd|exe)$/i, '')]
  if (runner === undefined) return undefined
  return listPackages(args, runner).find((name) => !runner.version.test(name) && !isElsewhere(name))
}

/** A file, an address or what a template will tell: nothing that a registry would choose a version for. */
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
