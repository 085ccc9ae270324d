import { describeMatrix } from './matrix.ts'

describeMatrix({ era: 'modern', transport: 'stdio', sdk: 'v2' })
