import { exit } from './exit.ts'

let ignored = false

/** `sallyport … | head` ends without a word: whoever read the answer has seen enough. */
export function endWithReader(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (!ignored && error.code === 'EPIPE') process.exit(exit.done)
    })
  }
}

/** For a gateway: it goes on when nobody reads along any more. */
export function ignoreReaders(): void {
  ignored = true
}
