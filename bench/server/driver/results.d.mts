export interface Where {
  scenario: string;
  transport: string;
  target: string;
  round: number;
}

export class Results {
  add(where: Where, values: Record<string, number | string | undefined>): void;
}
