/** A double represents every decimal number of up to 15 digits exactly. */
const safeLength = 15

/**
 * Whether a JSON number keeps its value when it is parsed and written again: `1.10` and `1e2` do; `1e400`,
 * `9007199254740993` and `0.12345678901234567890` do not.
 */
export function isExactNumber(word: string): boolean {
  if (word.length <= safeLength && !hasExponent(word)) return true
  const value = Number(word)
  if (String(value) === word) return true // fast path for the usual notation
  return Number.isFinite(value) && toDigits(word) === toDigits(String(value))
}

function hasExponent(word: string): boolean {
  return word.includes('e') || word.includes('E')
}

/**
 * Normalises a number, so that equal numbers give equal texts: the digits without leading and trailing zeros, then the
 * power of ten.
 */
function toDigits(word: string): string {
  const [mantissa = '', exponent = '0'] = word.toLowerCase().split('e')
  const sign = mantissa.startsWith('-') ? '-' : ''
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.')
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - significant.length)
  return `${sign}${significant}e${power}`
}
