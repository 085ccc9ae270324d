import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { GatewayError } from '../contract/errors.ts'

/** Serves the built files of the dashboard. They need no sign-in, because all data comes from the API. */
export type Web = {
  /** Sends `index.html`: the dashboard is a single-page application. */
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

/** Content security policy: no foreign content, no inline scripts, no frames. */
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

  /** Files are small and cached. A missing file is not cached, because a build may add it. */
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
      // The name of an asset changes with its content.
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

/** Next to the bundle, or in `dist` when running from sources. */
function builtFolder(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  return import.meta.url.endsWith('.ts') ? join(here, '..', '..', 'dist', 'web') : join(here, 'web')
}
