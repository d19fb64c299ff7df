/** Whether other machines can reach the server, as far as its settings say. */

import type { Settings } from "./settings.ts";

/** The name and the addresses that never leave the machine (RFC 1122, 3.2.1.3). A name below `localhost` may lead to another one. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, "");
  return /^localhost$|^127(?:\.\d{1,3}){3}$|^::1$/.test(name);
}

/** Whether other machines reach the server: it listens for them, or a reverse proxy passes their requests on. */
export function isPublic({ host, trustedProxies }: Settings): boolean {
  return !isLoopbackHost(host) || trustedProxies.rules.length > 0;
}

/** Whether only the operator chats, who may read questions on the terminal and see in the chat why a model fails. */
export function isOnlyForOperator(settings: Settings): boolean {
  return !isPublic(settings) && !settings.requiresKey;
}
