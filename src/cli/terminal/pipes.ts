import { exit } from './exit.ts'

let ignored = false

/** Exits without an error when the reader closes the pipe, as in `sallyport … | head`. */
export function endWithReader(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (!ignored && error.code === 'EPIPE') process.exit(exit.done)
    })
  }
}

/** For a gateway, which keeps running when the reader of its output closes the pipe. */
export function ignoreReaders(): void {
  ignored = true
}
