import { describeMatrix } from './matrix.ts'

describeMatrix({ era: 'legacy', transport: 'http', sdk: 'v1' }, { era: 'legacy', transport: 'http', sdk: 'v2' })
