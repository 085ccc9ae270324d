import type { Locator, Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { textOf } from '../scenarios/mcp/raw.ts'
import { poll } from '../support/gateway.ts'
import { addPerson } from '../support/people.ts'
import { expectAccessible, findChromium, openAs, openWindow, signIn, type TestPage } from './browser.ts'
import { type Stage, startStage } from './support.ts'

const chromium = findChromium()
const undoMs = 5000
const markup = '<img src=x onerror="document.title=1"><script>document.title="taken"</script>'

describe.runIf(chromium !== undefined)('the page of approvals', { timeout: 120_000 }, () => {
  let stage: Stage
  let count = 0
  /** Arguments that no other test has. */
  const fresh = () => ({ path: `notes-${++count}.txt` })

  beforeAll(async () => {
    stage = await startStage(
      {
        rules: [{ tools: 'files_both_thing', action: 'ask', approvers: 'two', name: 'Two look' }],
        limits: { pending: 100 },
      },
      { plain_thing: { title: markup, description: `Writes down ${markup}` } },
    )
    return () => stage.close()
  })

  async function open(path: string, person = stage.ada): Promise<TestPage> {
    const window = await openWindow(stage.browser)
    await openAs(window.page, stage.gateway, person, path)
    return window
  }

  it('shows what changed in a tool before its call is approved, and why an approval was withdrawn', async () => {
    await stage.restate({ idempotent_thing: { description: `Also sends it away ${markup}` } })
    const { pins } = stage.gateway.gateway
    const admin = { kind: 'user', name: 'ada', role: 'administrator', person: true } as const
    const pin = await poll(() =>
      pins.list(admin, {}).find(({ name, state }) => name === 'idempotent_thing' && state === 'changed'),
    )
    const id = await stage.ask('changer', 'files_idempotent_thing', fresh())
    await using window = await open(`/approvals/${id}`)
    const { page, complaints } = window
    const change = page.getByRole('region', { name: 'Tool change' }).first()
    await change.getByText('- The tool idempotent_thing of a fixture').waitFor()
    expect(await change.textContent()).toContain(`+ Also sends it away ${markup}`)
    await expectAccessible(page, 'a changed tool')
    await pins.accept(admin, [{ id: pin.id, hash: pin.live?.hash ?? '' }])
    await page.getByText('ada accepted the changed definition of files_idempotent_thing').waitFor()
    expect(await page.title()).not.toBe('taken')
    expect(complaints).toEqual([])
  })

  it('shows an approval as it comes, and what a person says there decides: a grant of three calls, then a denial', async () => {
    await using window = await open('/approvals')
    const { page, complaints } = window
    const client = await stage.gateway.connectV1('granted')
    const call = (given: object) =>
      client.callTool({ name: 'files_write_thing', arguments: { ...given } }, undefined, { onprogress: () => {} })

    const first = fresh()
    const waiting = call(first)
    await page.getByRole('button', { name: first.path }).click()
    await page.getByRole('heading', { level: 1, name: `Write thing ${first.path}` }).waitFor()
    await page.keyboard.press('g')
    await page.getByLabel('this tool with any arguments').check()
    await page.getByLabel('Number of calls').fill('3')
    await page.getByText('granted may use files_write_thing with any arguments, 3 times more, until').waitFor()
    await page.getByRole('button', { name: 'Approve and allow' }).click()
    await page.getByText('Approved, with a grant. The answer is sent in').waitFor()
    expect(await stage.received()).not.toContainEqual(first)
    await page.clock.fastForward(undoMs)
    expect(textOf(await waiting)).toContain(first.path)
    expect((await stage.received()).filter((given) => JSON.stringify(given).includes(first.path))).toHaveLength(1)
    await page.getByText('The call succeeded.').waitFor()

    for (const further of [fresh(), fresh(), fresh()]) expect(textOf(await call(further))).toContain(further.path)
    const last = fresh()
    const denied = call(last)
    await page.getByRole('button', { name: last.path }).click()
    await page.getByRole('heading', { level: 1, name: `Write thing ${last.path}` }).waitFor()
    await page.keyboard.press('d')
    await page.getByLabel('Reason').fill('Three were enough')
    await page.getByRole('button', { name: 'Deny', exact: true }).click()
    await page.getByText('Denied. The answer is sent in').waitFor()
    await page.clock.fastForward(undoMs)
    const result = await denied
    expect(result.isError).toBe(true)
    expect(textOf(result)).toContain('Three were enough')
    await page.getByText('Denied by ada').waitFor()
    expect(await stage.received()).not.toContainEqual(last)
    expect(complaints).toEqual([])
  })

  it('sends nothing for five seconds, in which a decision can be taken back', async () => {
    const id = await stage.ask('reviewer', 'files_write_thing', { ...fresh(), kind: 'undone' })
    await using window = await open(`/approvals/${id}`)
    const { page } = window
    const sent: string[] = []
    page.on('request', (request) => request.method() === 'POST' && sent.push(request.url()))
    await page.getByRole('button', { name: 'Approve once' }).click()
    await page.getByText('Approved. The answer is sent in').waitFor()
    await page.keyboard.press('u')
    await page.getByRole('button', { name: 'Approve once' }).waitFor()
    await pressCalmly(page, 'a')
    await page.getByText('Approved. The answer is sent in').waitFor()
    expect(sent).toEqual([])
    // Going to the list and back takes nothing away.
    await page.getByRole('link', { name: 'Approvals' }).click()
    await page.getByRole('button', { name: 'Undo' }).first().click()
    await page.goBack()
    await page.getByRole('button', { name: 'Approve once' }).click()
    await page.getByText('Approved. The answer is sent in').waitFor()
    await page.clock.fastForward(undoMs - 1000)
    expect(sent).toEqual([])
    expect(await stage.stateOf(id)).toBe('waiting')
    await page.clock.fastForward(1000)
    await poll(async () => ((await stage.stateOf(id)) === 'approved' ? true : undefined))
    expect(sent).toEqual([`${stage.gateway.url}/api/approvals/${id}/answer`])
  })

  it('sends what was decided when it is left', async () => {
    const id = await stage.ask('reviewer', 'files_write_thing', fresh())
    await using window = await open(`/approvals/${id}`)
    await window.page.getByRole('button', { name: 'Approve once' }).click()
    await window.page.getByText('The answer is sent in').waitFor()
    await window.page.goto('about:blank')
    await poll(async () => ((await stage.stateOf(id)) === 'approved' ? true : undefined))
  })

  it('is worked by keyboard alone', async () => {
    const older = await stage.ask('keyboard', 'files_write_thing', fresh())
    const newer = await stage.ask('keyboard', 'files_write_thing', fresh())
    await using window = await open(`/approvals/${newer}`)
    const { page } = window
    await page.getByRole('button', { name: 'Deny…' }).waitFor()
    await page.keyboard.press('j')
    await page.waitForURL(`**/approvals/${older}`)
    await page.getByRole('button', { name: 'Deny…' }).waitFor()
    await page.keyboard.press('k')
    await page.waitForURL(`**/approvals/${newer}`)
    await page.getByRole('button', { name: 'Deny…' }).waitFor()
    await page.keyboard.press('d')
    await page.locator('textarea:focus').waitFor()
    await page.keyboard.type('a and d are only letters here')
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'hidden' })
    await page.keyboard.press('g')
    await page.getByRole('form', { name: 'Approve and allow more' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Approve once' }).waitFor()
    expect(await stage.stateOf(newer)).toBe('waiting')
  })

  it('takes no letter for an answer that somebody was typing when the page came up', async () => {
    const id = await stage.ask('reviewer', 'files_write_thing', fresh())
    await using window = await open(`/approvals/${id}`)
    const { page } = window
    await page.getByRole('button', { name: 'Approve once' }).waitFor()
    await page.clock.fastForward(1000)
    await page.keyboard.type('what a year')
    expect(await page.getByText('The answer is sent in').count()).toBe(0)
    await pressCalmly(page, 'a')
    await page.getByText('Approved. The answer is sent in').waitFor()
    await page.keyboard.press('u')
  })

  it('shows text of agents and servers as text, with what cannot be seen made visible', async () => {
    const id = await stage.ask('reviewer', 'files_plain_thing', {
      title: markup.slice(0, 50),
      [markup]: markup,
      link: 'javascript:document.title="taken"',
      hidden: 'pay\u200bment \u202egnp.exe',
      alike: 'p\u0430ypal',
    })
    await using window = await open(`/approvals/${id}`)
    const { page, complaints } = window
    await page.getByText(`Writes down ${markup}`).waitFor()
    const shown = await page.getByRole('region', { name: 'Arguments' }).innerText()
    for (const mark of ['U+200B', 'U+202E', 'U+0430']) expect(shown).toContain(mark)
    await page.getByText('All arguments, exactly as they will be sent').click()
    await page.getByRole('region', { name: 'All arguments' }).getByText('"alike"').waitFor()
    expect(await page.locator('article img, article script, article a[href]').count()).toBe(0)
    expect(await page.title()).toMatch(/^\(\d+\) Sallyport$/)
    expect(complaints).toEqual([])
  })

  const endOfText = 'THE-END-OF-IT'
  const manyKeys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`key${at}`, at]))

  it.each<[what: string, given: object]>([
    ['300 short lines', { text: `${'ok\n'.repeat(300)}${endOfText}` }],
    ['one long line', { text: `${'word '.repeat(5000)}${endOfText}` }],
    ['a word without an end', { text: `${'x'.repeat(3000)}${endOfText}` }],
    ['many small arguments', { ...manyKeys(60), last: endOfText }],
    ['a long name', { ['n'.repeat(2000) + endOfText]: 1 }],
    ['deep nesting', { deep: JSON.parse(`${'['.repeat(200)}"${endOfText}"${']'.repeat(200)}`) }],
    ['a few texts of some lines each', { a: 'x\n'.repeat(9), b: 'x\n'.repeat(9), c: `${'x\n'.repeat(9)}${endOfText}` }],
    ['a difference', { old_string: 'a', new_string: `${'b\n'.repeat(100)}${endOfText}` }],
  ])('lets nobody approve arguments that were not opened and read to their end: %s', async (what, given) => {
    const id = await stage.ask('reviewer', 'files_write_thing', { kind: what, ...fresh(), ...given })
    await using window = await open(`/approvals/${id}`)
    const { page } = window
    const approve = page.getByRole('button', { name: 'Approve once' })
    const isSent = () => page.getByText('The answer is sent in').count()
    await page.getByText('Open all of the arguments before you approve them.').waitFor()
    expect(await approve.isDisabled()).toBe(true)
    if (what !== 'deep nesting' && !what.startsWith('a few')) expect(await page.getByText(endOfText).count()).toBe(0)
    await pressCalmly(page, 'a')
    await page.keyboard.press('g')
    expect(await isSent()).toBe(0)
    await page.keyboard.press('o')
    const end = page.getByRole('region', { name: 'Arguments' }).getByText(endOfText).first()
    await end.waitFor()
    expect(await page.evaluate(innerScrollers)).toEqual([])
    if (!what.startsWith('a few')) {
      await page.getByText('Scroll to the end of the arguments before you approve them.').waitFor()
      expect(await approve.isDisabled()).toBe(true)
      await pressCalmly(page, 'a')
      expect(await isSent()).toBe(0)
    }
    await readToEnd(page)
    await pressCalmly(page, 'a')
    await page.getByText('Approved. The answer is sent in').waitFor()
    await page.keyboard.press('u')
  })

  it('keeps the buttons in view, says how long a text is, and draws blanks that would push text away', async () => {
    const text = `harmless${'\n'.repeat(400)}${endOfText}\n${' '.repeat(500)}far right`
    const id = await stage.ask('reviewer', 'files_write_thing', { ...fresh(), text, note: 'x\n'.repeat(300) })
    for (const width of [1440, 375]) {
      await using window = await openWindow(stage.browser, { width, height: 700 })
      const { page } = window
      await openAs(page, stage.gateway, stage.ada, `/approvals/${id}`)
      const approve = page.getByRole('button', { name: 'Approve once' })
      await approve.waitFor()
      expect(await isInView(page, approve)).toBe(true)
      await page.getByText('301 lines, 600 characters').waitFor()
      await page.getByRole('button', { name: 'Show everything' }).click()
      await page.getByText('400 line breaks').waitFor()
      await page.getByText('500 blanks').waitFor()
      expect(await isInView(page, approve)).toBe(true)
      await page.getByText('far right').scrollIntoViewIfNeeded()
      expect(await isInView(page, approve)).toBe(true)
    }
  })

  it('warns beside the buttons where characters are invisible or look like others', async () => {
    const plain = await stage.ask('reviewer', 'files_write_thing', { ...fresh(), text: 'Привет, naïve 漢字 ❤️' })
    const hostile = { ...fresh(), text: `a\u200b\u{1d173}b`, 'p\u0430th': `${'x\n'.repeat(500)}\u202e` }
    const id = await stage.ask('reviewer', 'files_write_thing', hostile)
    await using window = await open(`/approvals/${plain}`)
    const { page } = window
    await page.getByRole('button', { name: 'Approve once' }).waitFor()
    expect(await page.getByText('Look closely').count()).toBe(0)
    await page.goto(`${stage.gateway.url}/approvals/${id}`)
    const warning = page.getByText(
      'Look closely: 3 invisible characters and 1 character that looks like another one in the arguments',
    )
    await warning.waitFor()
    expect(await isInView(page, warning)).toBe(true)
  })

  it('says before anybody approves whether the agent still waits', async () => {
    const client = await stage.gateway.connectV1('patient')
    const ending = new AbortController()
    const given = fresh()
    const call = client
      .callTool({ name: 'files_write_thing', arguments: given }, undefined, {
        signal: ending.signal,
        onprogress: () => {},
      })
      .catch(() => undefined)
    await using window = await open('/approvals')
    const { page } = window
    await page.getByRole('button', { name: given.path }).click()
    await page.getByText('The agent is waiting for the answer.').waitFor()
    ending.abort()
    await call
    // The page looks again by itself, a few seconds later.
    await poll(async () => {
      await page.clock.fastForward(5000)
      return (await page.getByText('No request is waiting for the answer at the moment.').count()) > 0 || undefined
    })
    await client.close()
  })

  it('says how it stands when another person has to agree as well, or somebody else was faster', async () => {
    const bo = await addPerson(stage.gateway, stage.ada, 'bo', 'administrator')
    const id = await stage.ask('reviewer', 'files_both_thing', fresh())
    await using window = await open(`/approvals/${id}`)
    const { page } = window
    await page.getByText('two people', { exact: true }).waitFor()
    expect(await page.getByRole('button', { name: 'Approve and allow' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Approve once' }).click()
    await page.getByText('Approved. The answer is sent in').waitFor()
    await page.clock.fastForward(undoMs)
    await page.getByText('Approved by ada').waitFor()
    await page.getByText('A second person must approve this.').waitFor()
    await page.getByText('You cannot answer this: you have already approved it').waitFor()
    await stage.answer(bo, id, { verdict: 'deny', reason: 'I looked' })
    await page.getByText(/Denied by bo at .*: I looked/).waitFor()
    expect(await page.getByRole('button', { name: 'Deny…' }).count()).toBe(0)

    const second = await stage.ask('reviewer', 'files_write_thing', fresh())
    await page.goto(`${stage.gateway.url}/approvals/${second}`)
    await page.getByRole('button', { name: 'Approve once' }).click()
    await page.getByText('The answer is sent in').waitFor()
    await stage.answer(bo, second, { verdict: 'deny' })
    await page.clock.fastForward(undoMs)
    await page.getByText('Your answer was not accepted. The approval was denied by bo.').waitFor()
    expect(await stage.stateOf(second)).toBe('denied')
  })

  it('shows an auditor everything and lets them answer nothing', async () => {
    const otto = await addPerson(stage.gateway, stage.ada, 'otto', 'auditor')
    const id = await stage.ask('reviewer', 'files_write_thing', fresh())
    await using window = await open(`/approvals/${id}`, otto)
    await window.page.getByText('You cannot answer this: auditors cannot answer approvals.').waitFor()
    await pressCalmly(window.page, 'a')
    expect(await window.page.getByText('The answer is sent in').count()).toBe(0)
  })

  it('carries the number that waits in the title and the icon of the tab', async () => {
    await using other = await otherStage({ pending: 20 })
    await using window = await openWindow(other.browser)
    const { page, complaints } = window
    const icon = () => page.locator('link[rel="icon"]').getAttribute('href')
    const titled = (title: string) => poll(async () => ((await page.title()) === title ? true : undefined))
    await openAs(page, other.gateway, other.ada, '/approvals')
    await titled('Sallyport')
    expect(await icon()).toBe('/icon.svg')
    const id = await other.ask('reviewer', 'files_write_thing', fresh())
    await titled('(1) Sallyport')
    for (let more = 0; more < 10; more++) await other.ask('reviewer', 'files_write_thing', fresh())
    await titled('(11) Sallyport')
    expect(await icon()).toBe('/waiting-many.svg')
    await other.answer(other.ada, id, { verdict: 'deny' })
    await titled('(10) Sallyport')
    for (const name of ['1', '9', 'many']) {
      const reply = await fetch(`${other.gateway.url}/waiting-${name}.svg`)
      expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
    }
    expect(complaints).toEqual([])
  })

  it('notifies of a waiting call only whoever asked for it by the button, and without arguments', async () => {
    await using other = await otherStage({})
    await using window = await openWindow(other.browser)
    const { page } = window
    // The browser's own notices, and a tab in the background, as far as the page can tell.
    await page.addInitScript(`
      window.notices = []
      window.Notification = class { static permission = 'default'
        static async requestPermission() { window.notices.push('asked'); return (this.permission = 'granted') }
        constructor(title, { body }) { window.notices.push(title + ': ' + body) } close() {} }
      Object.defineProperty(document, 'hidden', { get: () => window.isAway === true })`)
    const notices = () => page.evaluate('window.notices')
    await openAs(page, other.gateway, other.ada, '/approvals')
    const arrive = async () => {
      await page.evaluate(`window.isAway = true`)
      await other.ask('reviewer', 'files_write_thing', { ...fresh(), text: 'a secret plan' })
      const before = await page.title()
      await poll(async () => {
        await page.clock.fastForward(15_000)
        return (await page.title()) !== before || undefined
      })
      await page.evaluate(`window.isAway = false`)
    }
    await arrive()
    expect(await notices()).toEqual([])
    await page.getByRole('button', { name: 'Notify me in this browser when a call waits' }).click()
    await page.getByRole('button', { name: 'Turn browser notifications off' }).waitFor()
    await arrive()
    expect(await notices()).toEqual(['asked', 'Sallyport: 2 calls wait for approval.'])
    await page.getByRole('button', { name: 'Turn browser notifications off' }).click()
    await arrive()
    expect(await notices()).toHaveLength(2)
  })

  it('asks for the sign-in again when it has ended, and comes back to the approval', async () => {
    const id = await stage.ask('reviewer', 'files_write_thing', fresh())
    await using window = await openWindow(stage.browser)
    const { page, context } = window
    await signIn(page, stage.gateway, 'ada', `/approvals/${id}`)
    await page.getByText('live', { exact: true }).waitFor()
    const [cookie] = await context.cookies()
    const left = await fetch(`${stage.gateway.url}/api/sign-out`, {
      method: 'POST',
      headers: { cookie: `${cookie?.name}=${cookie?.value}`, 'content-type': 'application/json' },
    })
    expect(left.status).toBe(200)
    await page.getByRole('heading', { name: 'Sign in to Sallyport' }).waitFor()
    await page.getByLabel('Name').fill('ada')
    await page.getByLabel('Password').fill('wrong wrong wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('The name or the password is wrong.').waitFor()
    await page.getByLabel('Password').fill('correct horse battery')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL(`**/approvals/${id}`)
    await page.getByRole('button', { name: 'Approve once' }).waitFor()
  })

  it('is in nobody’s frame, runs nothing from elsewhere, and says so in its headers', async () => {
    for (const path of ['/', '/sign-in', '/approvals', '/approvals/some-id', '/theme.js']) {
      const reply = await fetch(`${stage.gateway.url}${path}`)
      const policy = reply.headers.get('content-security-policy') ?? ''
      for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"])
        expect(policy.split('; '), path).toContain(part)
      expect(policy).not.toContain('unsafe')
      expect([reply.status, reply.headers.get('x-frame-options')]).toEqual([200, 'DENY'])
    }
  })

  it('keeps nobody out, as far as axe can tell, and scrolls sideways nowhere, in both themes and on a phone', async () => {
    const id = await stage.ask('an-agent-with-a-name-that-does-not-end-before-the-line-does', 'files_destroy_thing', {
      ...fresh(),
      old_string: 'one\ntwo',
      new_string: 'one\nthree',
      text: 'x'.repeat(3000),
      hidden: 'a\u200bb',
      nested: { list: [1, 2, 3], more: { deep: true } },
    })
    await using window = await openWindow(stage.browser)
    const { page, complaints } = window
    const check = async (what: string) => {
      for (const theme of ['light', 'dark']) {
        await page.evaluate(`document.documentElement.dataset.theme = '${theme}'`)
        for (const width of [1440, 375]) {
          await page.setViewportSize({ width, height: 800 })
          await expectAccessible(page, `${what}, ${theme}, ${width}`)
          expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), what).toBeLessThanOrEqual(0)
        }
      }
    }
    await page.goto(`${stage.gateway.url}/`)
    await page.getByLabel('Name').waitFor()
    await check('sign-in')
    await openAs(page, stage.gateway, stage.ada, '/approvals')
    await page.getByText('an-agent-with-a-name').first().waitFor()
    await check('list')
    await page.goto(`${stage.gateway.url}/approvals/${id}`)
    await page.getByRole('button', { name: 'Show everything' }).click()
    await readToEnd(page)
    await check('approval')
    await page.getByRole('button', { name: 'Approve and allow…' }).click()
    await check('grant')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Deny…' }).click()
    await check('deny')
    expect(complaints).toEqual([])
  })

  it('says that the time of an approval is up, and that the line is lost, and keeps what it shows', async () => {
    await using other = await otherStage()
    const id = await other.ask('reviewer', 'files_write_thing', fresh())
    await using window = await openWindow(other.browser)
    const { page } = window
    await openAs(page, other.gateway, other.ada, `/approvals/${id}`)
    const { expiresAt } = (await other.ada.request('GET', `/api/approvals/${id}`)).message
    await poll(() => Date.now() > Date.parse(String(expiresAt)) || undefined)
    const late = await other.ada.request('POST', `/api/approvals/${id}/answer`, { verdict: 'approve' })
    expect([late.status, late.error.message]).toEqual([409, 'The approval has expired'])
    await page.getByText('Nobody answered in time. The call was not sent.').waitFor()
    await other.gateway.stop()
    await page.getByText('The connection to the gateway is lost.').waitFor()
    await page.getByText('Nobody answered in time. The call was not sent.').waitFor()
  })
})

/** Elements of an approval that scroll by themselves, and so hide a part of their text. */
const innerScrollers = `[...document.querySelectorAll('article *')]
  .filter((each) => each.scrollHeight > each.clientHeight + 2 && getComputedStyle(each).overflowY !== 'visible')
  .map((each) => each.outerHTML.slice(0, 200))`

const scrollToEnd = `scrollTo(0, 1e6), document.querySelector('[aria-label="Approval"]').scrollTo(0, 1e6)`

/** Scrolls until the page allows approving. The browser reports a moment later that the end is in view. */
async function readToEnd(page: Page): Promise<void> {
  const scroll = async () => {
    await page.evaluate(scrollToEnd)
    return page.getByRole('button', { name: 'Approve once' }).isEnabled()
  }
  await expect.poll(scroll, { timeout: 20_000 }).toBe(true)
}

async function isInView(page: Page, locator: Locator): Promise<boolean> {
  const [box, size] = [await locator.boundingBox(), page.viewportSize()]
  return box !== null && size !== null && box.y >= 0 && box.y + box.height <= size.height
}

/** As somebody who has looked for a moment. */
async function pressCalmly(page: Page, key: string): Promise<void> {
  await page.clock.fastForward(1000)
  await page.keyboard.press(key)
}

async function otherStage(limits: object = { approvalExpiry: 3000 }): Promise<Stage & AsyncDisposable> {
  const stage = await startStage({ limits })
  return { ...stage, [Symbol.asyncDispose]: () => stage.close() }
}
