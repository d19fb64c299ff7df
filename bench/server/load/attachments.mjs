/** Sends large files. Runs in a client of its own, so that its work is not taken for the server's. */

import { randomBytes } from "node:crypto";
import { now } from "../clock.mjs";
import { TRANSPORTS } from "./transports.mjs";

const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");

/** `count` messages with a picture of `bytes` bytes each, all at once. Returns how many seconds they took. */
export async function sendAttachments({ base, transport, count, bytes }) {
  const { open, encode, run, close } = TRANSPORTS[transport];
  const data = Buffer.concat([PNG, randomBytes(bytes - PNG.length)]).toString("base64");
  const attachment = { type: "image", name: "noise.png", mime_type: "image/png", data };
  const body = Buffer.from(encode({ tokens: 3 }, [attachment]), "latin1");
  const lines = await Promise.all(Array.from({ length: count }, () => open(base)));
  const begin = now();
  await Promise.all(lines.map((line) => run(line, asText(body, transport)).done));
  for (const line of lines) close(line);
  return { seconds: (now() - begin) / 1000, bytes: body.length };
}

/** `ws` would send a buffer as a binary frame. */
function asText(body, transport) {
  return transport === "ws" ? body.latin1Slice() : body;
}
