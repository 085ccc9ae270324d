export type BackoffSettings = { readonly first: number; readonly most: number; readonly factor: number }

/** Exponential backoff with jitter over the upper half, so that many clients of one server do not reconnect at once. */
export function backoffDelay(attempt: number, settings: BackoffSettings, random: () => number = Math.random): number {
  const ceiling = Math.min(settings.most, settings.first * settings.factor ** Math.max(0, attempt - 1))
  return Math.round(ceiling / 2 + (ceiling / 2) * random())
}
