/** A conversation as its page gets it: as it is shown, written down by a chunk. */

import type { ChatClient } from "./chat-client.ts";
import { loadChunk } from "./lazy-chunk.ts";
import { type StepModes, shownOf } from "./step-modes.ts";
import { strings } from "./strings.ts";

/** Rejects for a format that there is not, and when the chunk cannot be had. */
export async function exportConversation(
  format: string,
  client: ChatClient | undefined,
  modes: StepModes,
): Promise<string> {
  const [chunk] = await Promise.all([loadChunk("export"), client?.keeper.restored]);
  if (!chunk) throw new Error(strings.unreachable);
  const shown = (client?.session.messages ?? []).map((message) => shownOf(message, modes));
  const agent = client?.info?.agent ?? strings.fallbackAgent;
  return chunk.exportTranscript(format, shown, [strings.you, strings.agentSaid(agent)]);
}
