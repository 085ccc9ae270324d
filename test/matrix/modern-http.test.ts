import { describeMatrix } from './matrix.ts'

describeMatrix({ era: 'modern', transport: 'http', sdk: 'v2' })
