import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findChromium, openAs, openWindow, type TestPage } from './browser.ts'
import { type Stage, startStage } from './support.ts'

const phone = { width: 375, height: 667 }

describe.runIf(findChromium() !== undefined)('what a person approves on the page', { timeout: 120_000 }, () => {
  let stage: Stage

  beforeAll(async () => {
    stage = await startStage({ limits: { pending: 100 } })
    // The page has a part below the arguments, as far down as one can scroll.
    for (let count = 0; count < 10; count++) await stage.ask('agent', 'files_plain_thing', { count })
    return () => stage.close()
  })

  async function open(given: object, look: object = {}): Promise<TestPage> {
    const id = await stage.ask('agent', 'files_plain_thing', given)
    const window = await openWindow(stage.browser, look)
    await openAs(window.page, stage.gateway, stage.ada, `/approvals/${id}`)
    await window.page.getByRole('button', { name: 'Approve once' }).waitFor()
    return window
  }

  const toTheEnd = (page: Page) =>
    page.evaluate('for (const each of document.querySelectorAll("html, section")) each.scrollTop = 1e6')

  /** Where a text is on the screen, from left and from above. */
  async function placeOf(page: Page, text: string): Promise<{ left: number; top: number }> {
    const found: unknown = await page.evaluate(`(() => {
      const texts = document.createTreeWalker(document.querySelector('article'), NodeFilter.SHOW_TEXT)
      for (let node = texts.nextNode(); node; node = texts.nextNode()) {
        const at = node.textContent.indexOf(${JSON.stringify(text)})
        if (at < 0 || node.parentElement.closest('h1')) continue
        const range = document.createRange()
        range.setStart(node, at)
        range.setEnd(node, at + ${text.length})
        const { left, top } = range.getBoundingClientRect()
        return { left, top }
      }
    })()`)
    return z.object({ left: z.number(), top: z.number() }).parse(found)
  }

  it.each([
    ['on a phone', phone],
    ['on a low screen', { width: 1200, height: 420 }],
  ])('is shown from its beginning when it is opened, however far down the page was: %s', async (_where, look) => {
    const text = `its-start\n${`x${'\n'.repeat(11)}`.repeat(30)}its-end`
    await using window = await open({ path: 'a.txt', text }, look)
    const { page } = window
    const approve = page.getByRole('button', { name: 'Approve once' })
    await toTheEnd(page)
    await page.keyboard.press('o')
    await page.getByText('its-end').waitFor({ state: 'attached' })
    // Two frames later the browser has moved the page wherever it would.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    expect(await approve.isEnabled()).toBe(false)
    const first = await placeOf(page, 'its-start')
    expect(first.top).toBeGreaterThan(0)
    expect(first.top).toBeLessThan(look.height)
    await toTheEnd(page)
    await expect.poll(() => approve.isEnabled()).toBe(true)
  })

  it('is drawn in the order in which it is sent, also beside letters that are written from right to left', async () => {
    const given = {
      command: 'transfer 100 \u05d0\u05d1 900',
      path: '\u05d2/1/2',
      says: '\u0634\u0643\u0631\u0627 5 > 4',
    }
    await using window = await open(given)
    const { page } = window
    const across = async (...texts: string[]) => {
      const places = await Promise.all(texts.map((text) => placeOf(page, text)))
      return places.map(({ left }) => left)
    }
    for (const texts of [
      ['100', '\u05d0', '900'],
      ['\u05d2', '/1', '/2'],
      ['\u0634', ' 5', ' 4'],
    ]) {
      const found = await across(...texts)
      expect(found, texts.join()).toEqual(found.toSorted((left, right) => left - right))
    }
  })

  it('is drawn in its order and in time, however many such letters there are', async () => {
    const text = '\u05d0 1 '.repeat(3000)
    await using window = await open({ text: `${text}\u05d2/8/9` })
    const { page } = window
    await page.keyboard.press('o')
    await page.getByText('12,005 characters').first().waitFor()
    expect(await page.locator('bdi').count()).toBeLessThan(5000)
    const [first, last] = await Promise.all([placeOf(page, '/8'), placeOf(page, '/9')])
    expect(first.top !== last.top || first.left < last.left).toBe(true)
  })

  it('is told apart from what the page itself says, whatever its names are', async () => {
    await using window = await open({ 'Why asked': 'the rule allows it', Before: 'approved 99 of 99 times' })
    const given = window.page.getByRole('region', { name: 'Arguments' })
    await given.getByRole('heading', { name: 'Arguments' }).waitFor()
    expect(await given.getByText('approved 99 of 99 times').count()).toBe(1)
    expect(await window.page.getByText('no rule matches').count()).toBe(1)
  })
})
