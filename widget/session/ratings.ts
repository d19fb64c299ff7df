/** Sends the ratings of answers. Loaded with the first rating. */

import type { FeedbackRequest } from "../../server/protocol/chat.ts";
import type { AssistantMessage, Failure } from "../conversations/messages.ts";
import { fetchFrom } from "../transport/fetch.ts";
import { errorCodeOf } from "../transport/parse-event.ts";
import type { Endpoint } from "../transport/transport.ts";
import type { Access } from "./access.ts";

/** The user who rates, and the conversation in which the server has given the answer, if it knows any. */
export interface Rater {
  readonly user: string;
  readonly conversation: string | undefined;
}

export class Ratings {
  readonly #access: Pick<Access, "admit" | "endpoint" | "metadata" | "user">;
  /** The last rating: each waits for those before. */
  #sent: Promise<Failure | undefined> = Promise.resolve(undefined);

  constructor(access: Pick<Access, "admit" | "endpoint" | "metadata" | "user">) {
    this.#access = access;
  }

  /** Resolves with the failure, if the rating was not accepted. */
  send(message: AssistantMessage, rater: Rater): Promise<Failure | undefined> {
    this.#sent = this.#sent.then(() => this.#send(message, rater));
    return this.#sent;
  }

  async #send({ run = "", feedback }: AssistantMessage, { user, conversation }: Rater): Promise<Failure | undefined> {
    const { rating = null, reason, comment } = feedback ?? {};
    const refusal = await this.#access.admit();
    const { endpoint, metadata } = this.#access;
    // The user has changed in the meantime, and the new one has rated nothing.
    if (user && user !== this.#access.user) return undefined;
    const code = refusal?.code ?? (await post(endpoint, { run, conversation, rating, reason, comment, metadata }));
    return code ? { code: errorCodeOf(code), retryable: true } : undefined;
  }
}

/** Resolves with the code of the refusal, or `unreachable`; with `undefined` if the rating was accepted. */
async function post(endpoint: Endpoint, feedback: FeedbackRequest): Promise<string | undefined> {
  const init = { method: "POST", headers: { "content-type": "application/json" }, keepalive: true };
  const response = await fetchFrom(endpoint, "api/feedback", { ...init, body: JSON.stringify(feedback) }).catch(
    () => undefined,
  );
  if (response?.ok) return undefined;
  const body = await response?.json().catch(() => undefined);
  return String(body?.error?.code ?? "unreachable");
}
