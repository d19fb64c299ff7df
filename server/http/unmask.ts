/** Takes bytes out of their mask where they lie. `used` bytes of the frame came before them (RFC 6455, 5.3). */
export function unmask(bytes: Uint8Array, key: Uint8Array, used: number): void {
  // Four at a time, which takes a quarter of the time, wants them at a multiple of four.
  const from = Math.min(-bytes.byteOffset & 3, bytes.length);
  const to = from + ((bytes.length - from) & ~3);
  unmaskBytes(bytes, 0, from, key, used);
  if (to > from) unmaskWords(bytes.subarray(from, to), key, used + from);
  unmaskBytes(bytes, to, bytes.length, key, used);
}

function unmaskBytes(bytes: Uint8Array, from: number, to: number, key: Uint8Array, used: number): void {
  for (let at = from; at < to; at++) {
    bytes[at] = (bytes[at] ?? 0) ^ (key[(used + at) & 3] ?? 0);
  }
}

function unmaskWords(bytes: Uint8Array, key: Uint8Array, used: number): void {
  const turned = Uint8Array.from(key, (_, index) => key[(used + index) & 3] ?? 0);
  // Both in the order of bytes that this machine has.
  const [word = 0] = new Int32Array(turned.buffer);
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  for (let at = 0; at < words.length; at++) words[at] = (words[at] ?? 0) ^ word;
}
