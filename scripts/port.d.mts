export function findPort(root: string, args: readonly string[]): number
export function isFree(port: number): Promise<boolean>
