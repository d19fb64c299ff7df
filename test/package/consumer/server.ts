/** Uses the package's types for an embedded server, without anything internal. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Duplex } from "node:stream";
import { type AuthRequest, defineAgent, Unauthorized } from "parley-agent";
import { createParley, type Parley, type ParleyOptions } from "parley-agent/server";

interface Customer {
  id: string;
  plan: "free" | "pro";
}

declare module "parley-agent" {
  interface Register {
    user: Customer;
  }
}

async function authenticate({ token, raw }: AuthRequest): Promise<Customer | undefined> {
  if (token === "" || raw.url === undefined) throw new Unauthorized();
  return token === undefined ? undefined : { id: token, plan: "pro" };
}

const agent = defineAgent({ name: "Acme", model: "demo", instructions: ({ user }) => `Plan: ${user?.plan}` });
const options: ParleyOptions = { agent, authenticate, settings: { PARLEY_STATE_SECRET: "secret" }, basePath: "/chat" };
const parley: Parley = await createParley(options);

createServer(parley.handle).on("upgrade", parley.upgrade);
createTlsServer({}, parley.handle).on("upgrade", parley.upgrade);
parley.handle({} as IncomingMessage, {} as ServerResponse, (_error?: unknown) => {});
const isOurs: boolean = parley.upgrade({} as IncomingMessage, {} as Duplex, Buffer.alloc(0));
const text: string = await parley.metrics();
await parley.close();
export const all = [isOurs, text];

/** A module from `import * as agent`, with other exports. */
const module = { default: agent, authenticate, close: () => {}, helper: 1 };
await createParley({ agent: module });

// @ts-expect-error An agent is needed.
await createParley({ basePath: "/chat" });
// @ts-expect-error A misspelt option.
await createParley({ agent, basepath: "/chat" });
// @ts-expect-error Settings are texts.
await createParley({ agent, settings: { PORT: 80 } });
// @ts-expect-error A user has an id.
await createParley({ agent, authenticate: () => ({ name: "Ada" }) });
// @ts-expect-error The parts of the server are nobody's business.
parley.handler;
