import { z } from 'zod'

export const Risk = z.enum(['read', 'write', 'danger'])
export type Risk = z.infer<typeof Risk>

export const riskOrder: Readonly<Record<Risk, number>> = { read: 0, write: 1, danger: 2 }
