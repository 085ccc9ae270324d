import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { GatewayError } from '../contract/errors.ts'

/** The dashboard's files, as they were built. Its pages ask the API for everything, so that they need no sign-in. */
export type Web = {
  /** The page is one program for all addresses. */
  sendPage(request: IncomingMessage, response: ServerResponse): Promise<void>
  sendFile(request: IncomingMessage, response: ServerResponse, path: string): Promise<void>
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

export function createWeb(folder: string = builtFolder()): Web {
  const known = new Map<string, Promise<Buffer>>()

  /** Few and small, read once; one that is not there is asked for again, it may be built meanwhile. */
  function read(name: string): Promise<Buffer> {
    const reading = known.get(name) ?? readFile(join(folder, name))
    known.set(name, reading)
    reading.catch(() => known.delete(name))
    return reading
  }

  async function send(request: IncomingMessage, response: ServerResponse, name: string): Promise<void> {
    const body = await read(name).catch((error: unknown) => {
      throw new GatewayError('not-found', 'The dashboard has no such file', {}, { cause: error })
    })
    response.writeHead(200, {
      'content-type': types[extname(name)] ?? 'application/octet-stream',
      'content-length': body.length,
      // Names of assets change with their content.
      'cache-control': name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
      'content-security-policy': policy,
      'referrer-policy': 'no-referrer',
      'x-frame-options': 'DENY',
      'cross-origin-opener-policy': 'same-origin',
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  return {
    sendPage: (request, response) => send(request, response, 'index.html'),
    sendFile: (request, response, path) => send(request, response, path.slice(1)),
  }
}

/** Beside the bundle; from the sources, where the bundle goes. */
function builtFolder(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  return import.meta.url.endsWith('.ts') ? join(here, '..', '..', 'dist', 'web') : join(here, 'web')
}
