/** `40 s`, `2 min`, `3 h`, `5 d`: how long, in the unit a person would say. */
export function toSpan(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} d`
}

/** `9:20`, for what runs out. */
export function toCountdown(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000))
  if (seconds >= 3600) return toSpan(milliseconds)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** `18:00`, or with the day where it is another one. */
export function toClock(time: Date, now: Date): string {
  const clock = time.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })
  if (time.toDateString() === now.toDateString()) return clock
  return `${time.toLocaleDateString(undefined, { weekday: 'short', day: 'numeric', month: 'short' })}, ${clock}`
}
