import { describe, expect, it } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { expectAccessible, findChromium, launch, openWindow, type Theme } from './browser.ts'

describe.runIf(findChromium())('an error in the dashboard', () => {
  it.each<Theme>(['light', 'dark'])('links to its section, which fits a phone in the %s theme', async (theme) => {
    await using gateway = await startTestGateway({})
    const browser = await launch()
    try {
      await using window = await openWindow(browser, { theme, width: 375, height: 800 })
      const { page } = window
      await page.goto(`${gateway.url}/sign-in`)
      await page.getByLabel('Name').fill('ada')
      await page.getByLabel('Password').fill('wrong wrong wrong')
      await page.getByRole('button', { name: 'Sign in' }).click()
      const link = page.getByRole('link', { name: 'More about this error' })
      expect(await link.getAttribute('href')).toBe('/docs/errors#sign-in-failed')
      const opening = window.context.waitForEvent('page')
      await link.click()
      const docs = await opening
      await docs.getByRole('heading', { name: 'sign-in-failed' }).waitFor()
      const section = docs.locator('#sign-in-failed')
      const box = await section.boundingBox()
      expect(box?.y).toBeLessThan(800)
      expect(await docs.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(375)
      await expectAccessible(docs, `errors, ${theme}`)
      expect(window.complaints).toEqual([])
    } finally {
      await browser.close()
    }
  })
})
