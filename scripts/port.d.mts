export function findPort(root: string, args: readonly string[]): number | undefined
export function isFree(port: number | undefined): Promise<boolean>
export function describeTaken(root: string, port: number): string
