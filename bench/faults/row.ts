/** What was measured, and the figure. */
export type Row = readonly [what: string, figure: string]
