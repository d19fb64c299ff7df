export class BodyScan {
  push(chunk: Buffer): void;
  order(): { tokens: number; rate: number; id: number };
  get wantsStream(): boolean;
}
