const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** `40 s`, `2 min`, `30 h`, `5 d`: a duration in the largest unit that fits. */
export function toSpan(milliseconds: number): string {
  const rounded = Math.max(0, Math.round(milliseconds / second) * second)
  if (rounded < minute) return `${rounded / second} s`
  if (rounded < hour) return `${Math.round(rounded / minute)} min`
  if (rounded < 2 * day) return `${Math.round(rounded / hour)} h`
  return `${Math.round(rounded / day)} d`
}

/** `350 ms`, `2.4 s`; from one minute on the format of `toSpan`. */
export function toDuration(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return ''
  if (milliseconds < second) return `${Math.round(milliseconds)} ms`
  if (milliseconds < minute) return `${(milliseconds / second).toFixed(1)} s`
  return toSpan(milliseconds)
}

/** `3 min ago`, `in 2 h` */
export function toRelative(iso: string | undefined, now: number): string {
  if (iso === undefined) return ''
  const distance = now - Date.parse(iso)
  if (Number.isNaN(distance)) return iso
  if (Math.abs(distance) < 5 * second) return distance < 0 ? 'in a moment' : 'just now'
  const text = toSpan(Math.abs(distance))
  return distance > 0 ? `${text} ago` : `in ${text}`
}

/** `9:20`, the minutes and seconds that are left; from one hour on the format of `toSpan`. */
export function toCountdown(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / second))
  if (seconds >= 3600) return toSpan(milliseconds)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** `18:00`, with the date if it is not today. */
export function toClock(time: Date, now: Date): string {
  const clock = time.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })
  if (time.toDateString() === now.toDateString()) return clock
  return `${time.toLocaleDateString(undefined, { weekday: 'short', day: 'numeric', month: 'short' })}, ${clock}`
}

/** Parses `30d`, `12h`, `90m` (after `now`) or a date. */
export function toMoment(text: string, now: number): string | undefined {
  return toTime(text, now, 1)
}

/** Parses `7d`, `12h`, `90m` (before `now`) or a date. */
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

/** Local time, such as `09:05:31`. */
export function toClockTime(date: Date): string {
  return date.toTimeString().slice(0, 8)
}
