import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { GatewayError } from '../contract/errors.ts'

/** The dashboard's files, as they were built. Its pages ask the API for everything, so that they need no sign-in. */
export type Web = {
  /** True when the request was for a page or a file of the dashboard, and has its answer. */
  handle(request: IncomingMessage, response: ServerResponse, path: string): Promise<boolean>
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** Nothing from elsewhere, nothing inline, nobody's frame. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const pages = /^\/(sign-in|approvals(\/[A-Za-z0-9_-]{1,64})?)?$/
const files = /^\/(assets\/[A-Za-z0-9_.-]+|(icon|waiting-([1-9]|many))\.svg|theme\.js)$/

export function createWeb(folder: string = builtFolder()): Web {
  const known = new Map<string, Promise<Buffer>>()

  /** Few and small, read once; one that is not there is asked for again, it may be built meanwhile. */
  function read(name: string): Promise<Buffer> {
    const reading = known.get(name) ?? readFile(join(folder, name))
    known.set(name, reading)
    reading.catch(() => known.delete(name))
    return reading
  }

  return {
    async handle(request, response, path) {
      const isPage = pages.test(path)
      if ((!isPage && !files.test(path)) || (request.method !== 'GET' && request.method !== 'HEAD')) return false
      const name = isPage ? 'index.html' : path.slice(1)
      const body = await read(name).catch((error: unknown) => {
        throw new GatewayError('not-found', 'The dashboard has no such file', {}, { cause: error })
      })
      response.writeHead(200, {
        'content-type': types[extname(name)] ?? 'application/octet-stream',
        'content-length': body.length,
        // Names of assets change with their content.
        'cache-control': path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
        'content-security-policy': policy,
        'referrer-policy': 'no-referrer',
        'x-frame-options': 'DENY',
        'cross-origin-opener-policy': 'same-origin',
      })
      response.end(request.method === 'HEAD' ? undefined : body)
      return true
    },
  }
}

/** Beside the bundle; from the sources, where the bundle goes. */
function builtFolder(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  return import.meta.url.endsWith('.ts') ? join(here, '..', '..', 'dist', 'web') : join(here, 'web')
}
