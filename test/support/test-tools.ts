/** Tools for agents under test. */

import { z } from "zod";
import { tool } from "../../server/agent/define.ts";

/** Answers with the text that it was given. */
export const echo = tool({
  name: "echo",
  description: "Repeats a text.",
  parameters: z.object({ text: z.string() }),
  execute: ({ text }) => text,
});

/** Answers with an object, from a JSON Schema. */
export const lookup = tool<{ id: number }>({
  name: "lookup",
  description: "Looks a number up.",
  parameters: {
    type: "object",
    properties: { id: { type: "integer" } },
    required: ["id"],
    additionalProperties: false,
  },
  execute: ({ id }) => ({ id, square: id * id }),
});

/** Fails each time. */
export const broken = tool({
  name: "broken",
  description: "Fails.",
  parameters: z.object({}),
  execute: () => {
    throw new Error("out of order");
  },
});
