const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** `3 min ago`, `in 2 h`: what people ask of a list; `--json` has the exact time. */
export function toRelative(iso: string | undefined, now: number): string {
  if (iso === undefined) return ''
  const distance = now - Date.parse(iso)
  if (Number.isNaN(distance)) return iso
  if (Math.abs(distance) < 5 * second) return distance < 0 ? 'in a moment' : 'just now'
  const text = toCoarse(Math.abs(distance))
  return distance > 0 ? `${text} ago` : `in ${text}`
}

/** Local time, such as `09:05:31`. */
export function toClockTime(date: Date): string {
  return date.toTimeString().slice(0, 8)
}

export function toDuration(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return ''
  if (milliseconds < second) return `${Math.round(milliseconds)} ms`
  if (milliseconds < minute) return `${(milliseconds / second).toFixed(1)} s`
  return toCoarse(milliseconds)
}

/** `30d`, `12h`, `90m` or a date become the moment a token stops working. */
export function toMoment(text: string, now: number): string | undefined {
  return toTime(text, now, 1)
}

/** `7d`, `12h`, `90m` or a date become the moment from which on something is looked at. */
export function toPast(text: string, now: number): string | undefined {
  return toTime(text, now, -1)
}

function toTime(text: string, now: number, direction: 1 | -1): string | undefined {
  const match = /^(\d{1,6})([dhm])$/.exec(text.trim())
  if (match) {
    const unit = { d: day, h: hour, m: minute }[match[2] ?? 'd'] ?? day
    return new Date(now + direction * Number(match[1]) * unit).toISOString()
  }
  const parsed = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(parsed) ? undefined : new Date(parsed).toISOString()
}

function toCoarse(milliseconds: number): string {
  if (milliseconds < minute) return `${Math.round(milliseconds / second)} s`
  if (milliseconds < hour) return `${Math.round(milliseconds / minute)} min`
  if (milliseconds < 2 * day) return `${Math.round(milliseconds / hour)} h`
  return `${Math.round(milliseconds / day)} d`
}
