import type { CellResult, Results } from '../results.ts'
import { inOrder } from './text.ts'

const panels: readonly { readonly cell: string; readonly title: string }[] = [
  { cell: 'json-read-100B-16', title: 'HTTP server, reading tool, 100 B, 16 in flight' },
  { cell: 'json-read-10kB-16', title: 'HTTP server, reading tool, 10 kB, 16 in flight' },
  { cell: 'json-write-100B-64', title: 'HTTP server, writing tool, 100 B, 64 in flight' },
  { cell: 'stdio-read-100B-16', title: 'stdio server, reading tool, 100 B, 16 in flight' },
]

const width = 860
const left = 130
const right = 120
const row = 24
const head = 84
const panelHead = 40

const style = `
    .page { fill: #ffffff; stroke: #d0d7de }
    .bar { fill: #afb8c1 }
    .own { fill: #0969da }
    .range { stroke: #57606a; stroke-width: 1.4 }
    .one { stroke: #cf222e; stroke-dasharray: 3 3 }
    text { font-family: -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #1f2328; font-size: 13px }
    .head { font-weight: 600; font-size: 16px }
    .strong { font-weight: 600 }
    .quiet { fill: #57606a }
    .end { text-anchor: end }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117; stroke: #30363d }
      .bar { fill: #484f58 }
      .own { fill: #58a6ff }
      .range { stroke: #c9d1d9 }
      .one { stroke: #ff7b72 }
      text { fill: #e6edf3 }
      .quiet { fill: #9ea7b3 }
    }`

type Bar = { readonly name: string; readonly median: number; readonly min: number; readonly max: number }

/** CPU per call as a multiple of the plain proxy, one bar per target with its spread; all panels share one scale. */
export function toFigure({ cells, machine, rounds }: Results): string {
  const drawn = panels.flatMap(({ cell, title }) => {
    const result = cells.find((one) => one.cell.name === cell)
    const bars = result ? toBars(result) : []
    return bars.length === 0 ? [] : [{ title, bars }]
  })
  const most = Math.max(1, ...drawn.flatMap(({ bars }) => bars.map(({ max }) => max)))
  const scale = (value: number) => (value / most) * (width - left - right)
  let top = head
  const body = drawn.map(({ title, bars }) => {
    const panel = toPanel({ title, bars, top, scale })
    top += panelHead + bars.length * row
    return panel
  })
  const height = top + 20
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">
  <title id="title">CPU per call, relative to a plain proxy</title>
  <desc id="description">${toXml(drawn.map(describe).join(' '))}</desc>
  <style>${style}
  </style>
  <rect class="page" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="10"/>
  <text class="head" x="24" y="36">CPU per call, relative to a plain byte-forwarding proxy</text>
  <text class="quiet" x="24" y="58">Less is better. Median of ${rounds} interleaved rounds; the line is the spread; ${machine.cores} cores, Node ${toXml(machine.node.slice(1))}</text>
${body.join('\n')}
</svg>
`
}

function toBars({ targets }: CellResult): Bar[] {
  return inOrder(Object.keys(targets)).flatMap((name) => {
    const cpu = targets[name]?.toYardstick.cpu
    return cpu ? [{ name, ...cpu }] : []
  })
}

function toPanel(panel: { title: string; bars: readonly Bar[]; top: number; scale(value: number): number }): string {
  const { title, bars, top, scale } = panel
  const first = top + 28
  const one = left + scale(1)
  const lines = bars.map(({ name, median, min, max }, index) => {
    const y = first + index * row
    const own = name === 'sallyport'
    return `  <text class="end${own ? ' strong' : ''}" x="${left - 10}" y="${y + 12}">${toXml(name)}</text>
  <rect class="${own ? 'own' : 'bar'}" x="${left}" y="${y}" width="${scale(median).toFixed(1)}" height="16" rx="2"/>
  <line class="range" x1="${(left + scale(min)).toFixed(1)}" x2="${(left + scale(max)).toFixed(1)}" y1="${y + 8}" y2="${y + 8}"/>
  <text class="${own ? 'strong' : 'quiet'}" x="${(left + Math.max(scale(max), scale(1)) + 8).toFixed(1)}" y="${y + 12}">${median.toFixed(median < 10 ? 2 : 1)}</text>`
  })
  const bottom = first + bars.length * row - 6
  return `  <text class="strong" x="24" y="${top + 14}">${toXml(title)}</text>
${lines.join('\n')}
  <line class="one" x1="${one.toFixed(1)}" x2="${one.toFixed(1)}" y1="${first - 4}" y2="${bottom}"/>`
}

function describe({ title, bars }: { title: string; bars: readonly Bar[] }): string {
  return `${title}: ${bars.map(({ name, median }) => `${name} ${median.toFixed(2)}`).join(', ')}.`
}

function toXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
