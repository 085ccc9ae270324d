import { describeMatrix } from './matrix.ts'

describeMatrix({ era: 'legacy', transport: 'stdio', sdk: 'v1' })
