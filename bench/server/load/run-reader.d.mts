export class RunReader {
  constructor(onToken?: (age: number) => void);
  tokens: number;
  ended: boolean;
  read(json: string): void;
}

export class EventStreamReader {
  constructor(run: RunReader);
  feed(text: string): void;
}
