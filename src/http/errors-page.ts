import type { ServerResponse } from 'node:http'
import { describeNumbers, errorGroups, errorSections, toSummary } from '../contract/error-sections/error-sections.ts'
import { toGuideTitle } from '../contract/error-sections/section.ts'
import type { ErrorCode } from '../contract/errors.ts'
import { colours, createPlainPage, toHtml } from './plain-page.ts'

const style = `${colours}
* { box-sizing: border-box }
body { margin: 0; padding: 1.5rem 1rem 4rem; background: var(--back); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
main { max-width: 44rem; margin: 0 auto }
h1 { margin: 0 0 .5rem; font-size: 1.5rem; line-height: 1.25 }
h2 { margin: 3rem 0 1rem; font-size: 1.25rem; line-height: 1.25 }
h3 { margin: 0 0 .5rem; font: 600 1.0625rem/1.25 ui-monospace, monospace }
p, ul, dl, blockquote { margin: 0 0 .75rem }
section { margin: 0 0 1rem; padding: 1rem; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; scroll-margin-top: 1rem }
section:target { border-color: var(--key); outline: 2px solid var(--key) }
section > :last-child { margin-bottom: 0 }
blockquote { padding-left: .75rem; border-left: 3px solid var(--line); color: var(--soft) }
.soft { color: var(--soft); font-size: .875rem }
ul { padding-left: 1.25rem }
nav ul { padding: 0; list-style: none }
nav li { margin: 0 0 .5rem }
nav span { display: block; color: var(--soft); font-size: .875rem }
code { font: .9em ui-monospace, monospace }
a { color: var(--key) }
a:focus-visible { outline: 3px solid var(--key); outline-offset: 2px }
`

const send = createPlainPage({
  title: 'Sallyport: errors',
  style,
  headers: { 'cache-control': 'no-cache', 'referrer-policy': 'no-referrer' },
})

const body = `<h1>Errors</h1>
<p>Every error of this gateway has one of these codes. <code>sallyport explain CODE</code> prints the same text at a terminal.</p>
<nav aria-label="Codes">
${errorGroups.map(({ title, codes }) => `<h2>${toHtml(title)}</h2>\n<ul>\n${codes.map(toEntry).join('\n')}\n</ul>`).join('\n')}
</nav>
${errorGroups.map(({ title, codes }) => `<h2>${toHtml(title)}</h2>\n${codes.map(toSection).join('\n')}`).join('\n')}`

/** A section for every error code, for people who follow `docs` of an error. */
export function sendErrorsPage(response: ServerResponse): void {
  send(response, 200, body)
}

function toEntry(code: ErrorCode): string {
  return `<li><a href="#${code}"><code>${code}</code></a> <span>${toMarked(toSummary(code))}</span></li>`
}

function toSection(code: ErrorCode): string {
  const { meaning, example, steps, guide } = errorSections[code]
  return `<section id="${code}">
<h3>${code}</h3>
<p>${toMarked(meaning)}</p>
${example === undefined ? '' : `<blockquote>${toMarked(example)}</blockquote>\n`}<p>What to do:</p>
<ul>
${steps.map((step) => `<li>${toMarked(step)}</li>`).join('\n')}
</ul>
<p class="soft">Appears as: ${describeNumbers(code)}. Guide: ${toHtml(toGuideTitle(guide))} (<code>docs/guide/${toHtml(guide)}</code>)</p>
</section>`
}

/** Backticks are the only markup of the texts. */
function toMarked(text: string): string {
  return toHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}
