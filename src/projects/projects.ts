import { type ConfigEdit, type ConfigStore, listPatternsBetween } from '../config/config.ts'
import type { Repository } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'
import type { RemovalItem } from '../contract/removal.ts'
import { own } from '../documents/values.ts'
import type { Identity } from '../identity/identity.ts'
import { createTurns } from '../lib/turns.ts'
import type { Removal } from '../removal/removal.ts'

export type NewProject = {
  readonly name: string
  readonly title?: string | undefined
  readonly owners: readonly string[]
}
/** `null` removes the title or the repository. */
export type ProjectChange = {
  readonly name?: string | undefined
  readonly title?: string | null | undefined
  readonly owners?: readonly string[] | undefined
  readonly repository?: Repository | null | undefined
}

/** Creates, renames and changes projects. Only administrators may do this. */
export type ProjectService = {
  add(by: Principal, wanted: NewProject): Promise<void>
  /** Returns the name after the change. */
  change(by: Principal, name: string, wanted: ProjectChange): Promise<string>
}

type ProjectParts = {
  readonly config: Pick<ConfigStore, 'current' | 'statedIn' | 'change'>
  readonly identity: Pick<Identity, 'users'>
  readonly removal: Pick<Removal, 'listStored' | 'clear'>
}

export function createProjectService({ config, identity, removal }: ProjectParts): ProjectService {
  const inTurn = createTurns()

  async function add(by: Principal, { name, title, owners }: NewProject): Promise<void> {
    demandAdministrator(by)
    demandUsers(owners)
    // A project that was removed from the file by hand leaves secrets and grants, which nobody must inherit with the name.
    const left = await removal.listStored(name)
    if (left.length > 0 && !Object.hasOwn(config.current().projects, name)) throw inherits(name, left)
    // Pins are kept by name too. Cleared before the project exists, they cannot belong to it.
    if (!Object.hasOwn(config.current().projects, name)) await removal.clear(by, name)
    await edit(by, { kind: 'add-project', project: name, title, owners })
  }

  async function change(by: Principal, name: string, wanted: ProjectChange): Promise<string> {
    demandAdministrator(by)
    const { title, owners, repository } = wanted
    if (owners !== undefined) {
      demandUsers(owners)
      await edit(by, { kind: 'set-owners', project: name, owners }, () => demandOwned(name, owners))
    }
    if (title !== undefined) await edit(by, { kind: 'set-title', project: name, title: title ?? undefined })
    if (repository !== undefined)
      await edit(by, { kind: 'set-repository', project: name, repository: repository ?? undefined })
    if (wanted.name === undefined || wanted.name === name) return name
    await rename(by, name, wanted.name)
    return wanted.name
  }

  /**
   * The entry, its agents and its rules change in one text. Stored data refers to the project by its name and cannot
   * change in the same moment, so a project with stored data keeps its name.
   */
  async function rename(by: Principal, name: string, to: string): Promise<void> {
    const stored = await removal.listStored(name)
    const left = await removal.listStored(to)
    if (left.length > 0 && !Object.hasOwn(config.current().projects, to)) throw inherits(to, left)
    const judge = () => {
      if (Object.hasOwn(config.current().projects, to)) return // the edit refuses it
      const patterns = listPatternsBetween(config.current(), name, to)
      const pinned = serversOf(name).map((server) => `server ${server}, whose accepted tools are stored`)
      const accepted = own(config.current().projects, name)?.repository ? ['the accepted file of its repository'] : []
      const inTheWay = [...stored.map(toWords), ...pinned, ...accepted, ...patterns]
      if (inTheWay.length > 0) throw holds(name, inTheWay)
    }
    // Nothing of an earlier project of the new name may become part of this one, as in `add`.
    if (!Object.hasOwn(config.current().projects, to)) await removal.clear(by, to)
    await edit(by, { kind: 'rename-project', project: name, to }, judge)
    // Something may have been stored between the check and the change. A later project of the old name must not get it.
    await removal.clear(by, name)
  }

  /** The servers of the entry and of the accepted file of its repository. */
  function serversOf(name: string): string[] {
    return Object.keys(config.statedIn({ kind: 'project', name }).servers)
  }

  /** Settings of a project without owners are trusted, but owners wrote these settings. */
  function demandOwned(name: string, owners: readonly string[]): void {
    const project = own(config.current().projects, name)
    if (project === undefined || owners.length > 0 || project.owners.length === 0) return
    if (project.rules.length === 0 && serversOf(name).length === 0 && !project.repository) return
    throw new GatewayError(
      'request-invalid',
      `The servers and rules of ${name} were written by its owners. Without owners they would be trusted like those of administrators: keep an owner, or remove the servers and rules first`,
    )
  }

  async function edit(by: Principal, wanted: ConfigEdit, judge = () => {}): Promise<void> {
    await config.change(wanted, { by, judge })
  }

  /** A name without a user would give the project to the person who gets this name later. */
  function demandUsers(owners: readonly string[]): void {
    const known = identity.users.list().map(({ name }) => name)
    const missing = owners.find((owner) => !known.includes(owner))
    if (missing !== undefined) throw new GatewayError('not-found', `No user is named ${missing}`)
  }

  return {
    add: (by, wanted) => inTurn(() => add(by, wanted)),
    change: (by, name, wanted) => inTurn(() => change(by, name, wanted)),
  }
}

function demandAdministrator({ kind, role }: Principal): void {
  if (kind === 'user' && role === 'administrator') return
  throw new GatewayError('forbidden', 'Only administrators can create, rename and change projects')
}

const mostNamed = 10

function toWords({ noun, name }: RemovalItem): string {
  return `${noun} ${name}`
}

function toList(things: readonly string[]): string {
  const more = things.length > mostNamed ? ` and ${things.length - mostNamed} more` : ''
  return things.slice(0, mostNamed).join(', ') + more
}

function holds(name: string, inTheWay: readonly string[]): GatewayError {
  const message = `${name} cannot be renamed, because stored data and patterns refer to its name: ${toList(inTheWay)}. Set its title instead, or remove these first`
  return new GatewayError('request-invalid', message, { inTheWay: inTheWay.slice(0, 100) })
}

function inherits(name: string, left: readonly RemovalItem[]): GatewayError {
  const message = `Data of an earlier project named ${name} exists, and a new project would get it: ${toList(left.map(toWords))}. Remove it with \`sallyport projects remove ${name}\``
  return new GatewayError('name-taken', message, { left: left.slice(0, 100).map(toWords) })
}
