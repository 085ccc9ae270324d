/** A double keeps every decimal number of so many digits, and no shorter word has more. */
const safeLength = 15

/**
 * Whether a JSON number is the same number after it was parsed and written again: `1.10` and `1e2` are, `1e400`,
 * `9007199254740993` and `0.12345678901234567890` are not.
 */
export function isExactNumber(word: string): boolean {
  if (word.length <= safeLength && !hasExponent(word)) return true
  const value = Number(word)
  if (String(value) === word) return true // as nearly all programs write them
  return Number.isFinite(value) && toDigits(word) === toDigits(String(value))
}

function hasExponent(word: string): boolean {
  return word.includes('e') || word.includes('E')
}

/** One text for one number: its digits without zeros at either end, and the power of ten of the last one. */
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
