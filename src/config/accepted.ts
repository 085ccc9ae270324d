import { join } from 'node:path'
import type { Config, Project, ScopedServer } from '../contract/config.ts'
import { type ScopeKey, toScopeKey } from '../contract/scope.ts'
import { own } from '../documents/values.ts'
import type { AcceptedFile } from '../storage/tables/accepted-files.ts'

/** The file of each server that does not come from the configuration, by scope and name. */
export type ServerFiles = ReadonlyMap<ScopeKey, ReadonlyMap<string, string>>

/** Where a scope takes servers from. */
export type FilePlace = Pick<AcceptedFile, 'scope' | 'folder' | 'file'>

/** Adds the accepted servers of repositories to their projects. */
export function withAccepted(config: Config, files: readonly AcceptedFile[]): { config: Config; files: ServerFiles } {
  const found = files.flatMap((file) => {
    const name = projectOfFile(config, file)
    if (name === undefined) return []
    const project = own(config.projects, name)
    return project === undefined ? [] : [{ name, project, file, added: listAdded(config, project, file.servers) }]
  })
  if (found.length === 0) return { config, files: new Map() }
  const projects = found.map(({ name, project, added }): [string, Project] => [
    name,
    { ...project, servers: { ...Object.fromEntries(added), ...project.servers } },
  ])
  return {
    config: { ...config, projects: { ...config.projects, ...Object.fromEntries(projects) } },
    files: new Map(
      found.map(({ file, added }) => [
        file.scope,
        new Map(added.map(([name]) => [name, join(file.folder, file.file)])),
      ]),
    ),
  }
}

/**
 * A repository only adds servers. An entry with the name of another server would refine that server, or get everything
 * that the rules allow for its name, so it is ignored.
 */
function listAdded(config: Config, project: Project, servers: AcceptedFile['servers']): [string, ScopedServer][] {
  return Object.entries(servers).filter(
    ([name]) => !Object.hasOwn(config.servers, name) && !Object.hasOwn(project.servers, name),
  )
}

/** Accepted contents that no project refers to: of removed projects, and of repositories that a project had before. */
export function listStale(config: Config, files: readonly AcceptedFile[]): AcceptedFile[] {
  return files.filter(({ scope }) => scope.startsWith('project:')).filter((file) => !projectOfFile(config, file))
}

/** The file that a project takes servers from. */
export function placeOf(config: Config, project: string): FilePlace | undefined {
  const repository = own(config.projects, project)?.repository
  if (repository === undefined) return undefined
  return { scope: toScopeKey({ kind: 'project', name: project }), folder: repository.path, file: repository.file }
}

export function isSamePlace(left: FilePlace, right: FilePlace): boolean {
  return left.scope === right.scope && left.folder === right.folder && left.file === right.file
}

function projectOfFile(config: Config, file: FilePlace): string | undefined {
  const name = file.scope.slice('project:'.length)
  const place = file.scope.startsWith('project:') ? placeOf(config, name) : undefined
  return place && isSamePlace(place, file) ? name : undefined
}
