import type { Config } from '../contract/config.ts'
import { isSame } from '../documents/values.ts'
import type { AcceptedFile, AcceptedFileStore } from '../storage/tables/accepted-files.ts'
import { type FilePlace, isSamePlace, listStale } from './accepted.ts'

/** The accepted contents of files of servers, as this gateway has read them last. */
export type AcceptedFiles = {
  list(): readonly AcceptedFile[]
  find(place: FilePlace): AcceptedFile | undefined
  /** Reads them again. Returns the scopes whose accepted contents differ from before. */
  read(): Promise<string[]>
  accept(file: AcceptedFile): Promise<void>
  /** Removes the contents that no project refers to, so that a later project of this name does not get them. */
  forgetStale(config: Config, by: string): Promise<void>
}

export async function createAcceptedFiles(store: AcceptedFileStore | undefined): Promise<AcceptedFiles> {
  let known: readonly AcceptedFile[] = (await store?.list()) ?? []

  async function read(): Promise<string[]> {
    const before = known
    known = (await store?.list()) ?? []
    const scopes = new Set([...before, ...known].map(({ scope }) => scope))
    const of = (files: readonly AcceptedFile[], scope: string) => files.filter((file) => file.scope === scope)
    return [...scopes].filter((scope) => !isSame(of(before, scope), of(known, scope)))
  }

  return {
    list: () => known,
    find: (place) => known.find((file) => isSamePlace(file, place)),
    read,
    async accept(file) {
      const { scope, by, hash, servers } = file
      const body = { change: 'file-accepted', file: toShown(file), hash, servers: Object.keys(servers) }
      await store?.accept(file, { principal: by, subject: scope, body })
      await read()
    },
    async forgetStale(config, by) {
      const stale = listStale(config, known)
      for (const file of stale) {
        const body = { change: 'file-forgotten', file: toShown(file), hash: file.hash }
        await store?.forget([file], { principal: by, subject: file.scope, body })
      }
      if (stale.length > 0) await read()
    },
  }
}

function toShown({ folder, file }: FilePlace): { folder: string; path: string } {
  return { folder, path: file }
}
