export function writeOrder(order: { tokens: number; rate?: number; id?: number }): string;
