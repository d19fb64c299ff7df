/** TLS without certificates: both sides share a key (PSK). */

import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import { connect } from "node:tls";

const PSK = { psk: Buffer.alloc(32, 7), identity: "test" };
const CIPHERS = { ciphers: "PSK", maxVersion: "TLSv1.2" } as const;

export const createPskServer = (): Server => createServer({ ...CIPHERS, pskCallback: () => PSK.psk });

export const connectByPsk = (port: number): Socket =>
  connect({ ...CIPHERS, port, host: "127.0.0.1", pskCallback: () => PSK, checkServerIdentity: () => undefined });
