/** The number of rounds of a test: a few in `npm test`, many in `npm run test:slow`, which runs the files below again. */
export function rounds<Count>(usual: Count, long: Count): Count {
  return process.env.SALLYPORT_LONG_TESTS ? long : usual
}

/** Test files that use `rounds`. */
export const filesWithRounds = [
  'test/config/edits.test.ts',
  'test/scenarios/approvals/races.test.ts',
  'test/scenarios/life/process.test.ts',
  'test/scenarios/life/revoked-everywhere.test.ts',
  'test/scenarios/stdio/gateway.test.ts',
]
