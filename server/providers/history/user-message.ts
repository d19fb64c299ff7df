import type { ReceivedFile } from "../../protocol/attachments.ts";
import type { ContentPart, UserMessage } from "../../protocol/chat.ts";

/** The user's message as Chat Completions takes it: plain text, or parts when something is attached. */
export function userMessage(message: string, attachments: readonly ReceivedFile[]): UserMessage {
  if (attachments.length === 0) return { role: "user", content: message };
  // Several APIs refuse an empty text part.
  const text: ContentPart[] = message === "" ? [] : [{ type: "text", text: message }];
  return { role: "user", content: [...text, ...attachments.map(attachmentPart)] };
}

function attachmentPart({ type, name, url }: ReceivedFile): ContentPart {
  if (type === "image") return { type: "image_url", image_url: { url } };
  return { type: "file", file: { filename: name, file_data: url } };
}
