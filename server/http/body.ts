import type { IncomingMessage, ServerResponse } from "node:http";
import { ApiError } from "../protocol/api-error.ts";

/**
 * Reads a JSON body of at most `limit` bytes. Judged by `Content-Length` before a byte is read, and counted
 * while it arrives; what is over the limit is thrown away, not kept, so that the client can read the 413.
 */
export async function readJson(
  req: IncomingMessage,
  res: ServerResponse,
  limit: number,
): Promise<unknown> {
  refuseOtherMedia(req);
  const tooLarge = new ApiError(
    "request_too_large",
    `The request body is larger than ${limit} bytes.`,
  );
  const length = Number(req.headers["content-length"] ?? 0);
  if (length > limit) throw tooLarge;
  // A client that sent "Expect: 100-continue" waits until we want the body; by now we do.
  if (req.headers.expect !== undefined) res.writeContinue();
  return parseJson(await readBytes(req, limit, tooLarge));
}

function refuseOtherMedia(req: IncomingMessage): void {
  const type = (req.headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase();
  if (type !== "application/json") {
    throw new ApiError(
      "unsupported_media_type",
      "Send the body as JSON, with the header Content-Type: application/json.",
    );
  }
  const coding = req.headers["content-encoding"] ?? "identity";
  if (coding.toLowerCase() !== "identity") {
    throw new ApiError("unsupported_media_type", "Send the body without Content-Encoding.");
  }
}

function readBytes(req: IncomingMessage, limit: number, tooLarge: ApiError): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    req.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) {
        chunks.length = 0;
        reject(tooLarge);
      } else {
        chunks.push(chunk);
      }
    });
    req.on("end", () => resolve(Buffer.concat(chunks)));
    req.on("close", () => reject(new ApiError("invalid_request", "The request body was cut off.")));
    req.on("error", reject);
  });
}

/** Strict UTF-8, then JSON; both failures are the client's. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    const what = error instanceof SyntaxError ? "valid JSON" : "valid UTF-8";
    throw new ApiError("invalid_json", `The message is not ${what}.`);
  }
}
