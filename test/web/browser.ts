import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'
import { findBrowser, packagedFolder } from '../../scripts/browser.mjs'
import type { TestGateway } from '../support/gateway.ts'
import { password, type TestPerson } from '../support/people.ts'

export const findChromium = (): string | undefined => findBrowser()

export function launch(): Promise<Browser> {
  const executablePath = findChromium()
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
    env: { ...process.env, ...(executablePath?.startsWith(packagedFolder()) && packagedEnvironment()) },
  })
}

/** The browser of the package brings the libraries and fonts that a minimal system lacks. */
function packagedEnvironment(): NodeJS.ProcessEnv {
  const folder = packagedFolder()
  const libraries = [process.env.LD_LIBRARY_PATH, join(folder, 'al2023', 'lib')].filter(Boolean).join(':')
  const fonts = existsSync('/etc/fonts/fonts.conf') ? {} : { FONTCONFIG_FILE: join(folder, 'fonts.conf') }
  return { LD_LIBRARY_PATH: libraries, ...fonts }
}

export type Theme = 'light' | 'dark'
export type Look = { readonly theme?: Theme; readonly width?: number; readonly height?: number }

export type TestPage = AsyncDisposable & {
  readonly page: Page
  readonly context: BrowserContext
  /** What the browser complained about: errors of the program, and what the security policy forbade. */
  readonly complaints: string[]
}

/** A browser window of its own, without anybody signed in. */
export async function openWindow(
  browser: Browser,
  { theme = 'light', width = 1440, height = 900 }: Look = {},
): Promise<TestPage> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    reducedMotion: 'reduce',
    hasTouch: width < 600,
  })
  context.setDefaultTimeout(20_000)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    // That a request was refused is said by the page itself, and some tests want just that.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text())
  })
  return { page, context, complaints, [Symbol.asyncDispose]: () => context.close() }
}

export async function signIn(page: Page, gateway: TestGateway, name: string, path = '/approvals'): Promise<void> {
  await page.goto(`${gateway.url}${path}`)
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
}

/** As somebody whose sign-in the browser has already. The page's clock can be moved. */
export async function openAs(page: Page, gateway: TestGateway, { cookie }: TestPerson, path: string): Promise<void> {
  const [name = '', value = ''] = cookie.split('=')
  await page.context().addCookies([{ name, value, url: gateway.url, httpOnly: true, sameSite: 'Strict' }])
  await page.clock.install()
  await page.goto(`${gateway.url}${path}`)
  await page.getByText('live', { exact: true }).waitFor()
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

type Violation = { readonly id: string; readonly help: string; readonly nodes: readonly { readonly html: string }[] }

/** Nothing that keeps people out, as far as a program can tell. */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  // The page's own policy lets no script in: this one comes by the tools of the browser.
  const session = await page.context().newCDPSession(page)
  const { result: known } = await session.send('Runtime.evaluate', { expression: "typeof axe === 'object'" })
  if (known.value !== true) await session.send('Runtime.evaluate', { expression: axe })
  const { result } = await session.send('Runtime.evaluate', {
    expression: 'axe.run().then(({ violations }) => JSON.stringify(violations))',
    awaitPromise: true,
  })
  await session.detach()
  const violations: Violation[] = JSON.parse(String(result.value))
  expect(violations.map(({ id, help, nodes }) => `${what}: ${id}: ${help}: ${nodes[0]?.html}`)).toEqual([])
}
