import { describe, expect, it } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { password } from '../support/people.ts'
import { findChromium, launch, openWindow } from './browser.ts'

describe.runIf(findChromium())('the first administrator', () => {
  it('is asked for by the sign-in page, and is signed in after the set-up page', async () => {
    await using gateway = await startTestGateway({})
    const browser = await launch()
    try {
      await using window = await openWindow(browser)
      const { page } = window
      await page.goto(gateway.url)
      await page.getByText('This gateway has no administrator yet.').waitFor()
      await page.goto(`${gateway.url}/setup?code=${gateway.gateway.identity.setup.code()}`)
      await page.getByLabel('Name').fill('ada')
      await page.getByLabel('Password').fill(password)
      await page.getByRole('button').click()
      await page.getByRole('link', { name: 'Open the dashboard' }).click()
      await page.getByRole('button', { name: 'Sign out' }).waitFor()
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByRole('heading', { name: 'Sign in to Sallyport' }).waitFor()
      expect(await page.getByText('no administrator yet').count()).toBe(0)
      expect(window.complaints).toEqual([])
    } finally {
      await browser.close()
    }
  })
})
