import { exit } from './exit.ts'

let ignored = false

/** `sallyport … | head` ends quietly when the reader has closed the pipe. */
export function endWithReader(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (!ignored && error.code === 'EPIPE') process.exit(exit.done)
    })
  }
}

/** For a gateway: it keeps running when the reader of its output has gone. */
export function ignoreReaders(): void {
  ignored = true
}
