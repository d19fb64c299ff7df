/** Default limits in bytes, which depend on the memory of this process. */

import { getHeapStatistics } from "node:v8";

const MIB = 1024 * 1024;

/** All in bytes. */
export interface MemoryDefaults {
  readonly bodyBytes: number;
  readonly requestBytesTotal: number;
  readonly resumeBytesTotal: number;
}

/**
 * Defaults for a heap of this many bytes. A message with files takes more than three times its bytes of heap until its
 * answer is over, and four times as much again while it is serialized for the model. If the heap is exceeded, V8 ends
 * the process, with every answer in it.
 */
export function memoryDefaults(heap: number = heapBytes()): MemoryDefaults {
  const part = (share: number, most: number) => Math.min(most * MIB, Math.max(1, Math.floor(heap / share / MIB)) * MIB);
  return { bodyBytes: part(10, 64), requestBytesTotal: part(7, 512), resumeBytesTotal: part(8, 256) };
}

/** A warning for the operator at the start; `undefined` if the heap is large enough for what the settings allow. */
export function memoryAdvice(
  allowed: { readonly maxBodyBytes: number; readonly maxRequestBytesTotal: number },
  heap: number = heapBytes(),
): string | undefined {
  const { bodyBytes, requestBytesTotal } = memoryDefaults(heap);
  const has = `The heap of a process is ${Math.floor(heap / MIB)} MiB`;
  if (allowed.maxBodyBytes > bodyBytes || allowed.maxRequestBytesTotal > requestBytesTotal) {
    return `${has}, and PARLEY_MAX_BODY_BYTES or PARLEY_MAX_REQUEST_BYTES_TOTAL allows more than fits: large messages can crash the process. Raise the heap with NODE_OPTIONS=--max-old-space-size=MIB, or lower the settings.`;
  }
  if (allowed.maxBodyBytes === bodyBytes && bodyBytes < memoryDefaults(Infinity).bodyBytes) {
    return `${has}, so messages may have up to ${bodyBytes / MIB} MiB. Set NODE_OPTIONS=--max-old-space-size=1024 to allow 64 MiB.`;
  }
  return undefined;
}

function heapBytes(): number {
  return getHeapStatistics().heap_size_limit;
}
