/** Uses the package's types for agents, with code that must be rejected. */

import {
  type AgentDefinition,
  agUi,
  defineAgent,
  type ModelName,
  type RunEvent,
  type ToolContext,
  tool,
  toolResult,
} from "parley-agent";
import { z } from "zod";

interface Customer {
  id: string;
  plan: "free" | "pro";
}

declare module "parley-agent" {
  interface Register {
    user: Customer;
  }
}

/** Compiles only if both types are equal. */
function same<A>(_value: A): <B>(other: B & ([A] extends [B] ? ([B] extends [A] ? B : never) : never)) => void {
  return () => {};
}

export const fromZod = tool({
  name: "from_zod",
  description: "Arguments that zod describes.",
  parameters: z.object({ part: z.enum(["brakes", "gears"]), count: z.number().default(1) }),
  async execute(args, { user, metadata, signal, callId }) {
    same(user)(undefined as Customer | undefined);
    same(metadata)({} as Readonly<Record<string, string>>);
    same(args)({ part: "brakes", count: 1 } as { part: "brakes" | "gears"; count: number });
    same(signal)(new AbortController().signal);
    same(callId)("" as string);
    return { euros: args.count * 60 };
  },
});

export const fromJsonSchema = tool({
  name: "from_json_schema",
  description: "Arguments that a JSON Schema describes, written in place.",
  parameters: {
    type: "object",
    properties: {
      order: { type: "string" },
      count: { type: "integer" },
      kind: { enum: ["new", "used"] },
      tags: { type: "array", items: { type: "string" } },
      until: { type: ["string", "null"] },
      where: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      size: { anyOf: [{ type: "number" }, { const: "any" }] },
    },
    required: ["order", "tags", "until", "where", "size"],
    additionalProperties: false,
  },
  execute: ({ order, count, kind, tags, until, where, size }) => {
    same(order)("" as string);
    same(count)(undefined as number | undefined);
    same(kind)(undefined as "new" | "used" | undefined);
    same(tags)([] as string[]);
    same(until)(null as string | null);
    same(where)({ city: "" } as { city: string });
    same(size)(1 as number | "any");
    return order.length;
  },
});

export const withChoices = tool({
  name: "with_choices",
  description: "Arguments of which one of two is needed, and a tuple.",
  parameters: {
    type: "object",
    properties: {
      email: { type: "string" },
      phone: { type: "string" },
      unit: { type: "string", oneOf: [{ const: "km" }, { const: "mi" }] },
      pair: { type: "array", prefixItems: [{ type: "string" }], items: { type: "number" } },
    },
    required: ["unit", "pair"],
    anyOf: [{ required: ["email"] }, { required: ["phone"] }],
  },
  execute: ({ email, phone, unit, pair }) => {
    same(email)(undefined as string | undefined);
    same(phone)(undefined as string | undefined);
    same(unit)("km" as "km" | "mi");
    same(pair)([] as unknown[]);
  },
});

export const withoutArguments = tool({
  name: "without_arguments",
  description: "No arguments.",
  parameters: { type: "object" },
  execute: (args) => same(args)({} as Record<string, unknown>),
});

export const withPicture = tool({
  name: "with_picture",
  description: "A picture.",
  parameters: { type: "object" },
  execute: () => toolResult({ text: "A dot", images: [{ data: new Uint8Array(), mimeType: "image/png" }], json: {} }),
  done: (_args, { text }) => text ?? "",
});
// @ts-expect-error: no such type of pictures.
toolResult({ images: [{ data: "", mimeType: "image/svg+xml" }] });

const parameters = {
  type: "object",
  properties: { bike: { type: "string", description: "Which one." } },
  required: ["bike"],
} as const;

export const asConst = tool({
  name: "as_const",
  description: "Arguments that a JSON Schema describes, written elsewhere.",
  parameters,
  execute: ({ bike }) => bike.toUpperCase(),
});

const unknownBefore: Record<string, unknown> = { type: "object" };

export const stated = tool<{ id: number }>({
  name: "stated",
  description: "Arguments whose type the author states.",
  parameters: unknownBefore,
  execute: ({ id }) => id.toFixed(),
});

export const open = tool({
  name: "open",
  description: "Arguments of which nothing is known.",
  parameters: unknownBefore,
  execute: (args) => same(args)({} as Record<string, unknown>),
});

tool({
  name: "wrong_use",
  description: "An argument that is no number.",
  parameters,
  // @ts-expect-error: `bike` is a string.
  execute: ({ bike }) => bike.toFixed(),
});

tool({
  name: "unknown_argument",
  description: "An argument that the schema does not have.",
  parameters,
  // @ts-expect-error: there is no `car`.
  execute: ({ car }) => car,
});

export default defineAgent({
  name: "Types",
  model: "openai/a-model-of-tomorrow",
  fallbacks: ["anthropic/claude-sonnet-5"],
  instructions: "Be brief.",
  tools: [fromZod, fromJsonSchema, withChoices, withoutArguments, asConst, stated, open],
  chat: { welcome: "Hello!", suggestions: ["What can you do?"] },
});

export const hosted = defineAgent({
  name: "Types",
  accepts: ["image/png"],
  async *run({ messages, attachments, state, ctx, signal }) {
    const file: Uint8Array | undefined = attachments[0]?.data;
    yield `${messages[0]?.role} ${ctx.conversation} ${state?.thread} ${file?.byteLength}`;
    if (!signal.aborted) yield { type: "state", data: { thread: "1" } } satisfies RunEvent;
  },
});
export const remote = defineAgent({ name: "Types", run: agUi("http://127.0.0.1:8000/") });
// @ts-expect-error: there is no such type of files.
defineAgent({ name: "Types", run: () => "Hi", accepts: ["text/html"] });
// @ts-expect-error: an agent has a model.
defineAgent({ name: "Types" });
// @ts-expect-error: there is no such field.
defineAgent({ name: "Types", model: "demo", instruction: "Be brief." });

export type Exported = [AgentDefinition, ModelName, ToolContext];

export const withTexts = defineAgent({
  name: "Elsewhere",
  run: agUi("http://127.0.0.1:8000/"),
  toolTexts: {
    cancel_order: {
      title: { en: "Cancel", de: "Stornieren" },
      running: ({ order }) => `Cancelling ${order}`,
      done: async (_args, result) => ({ en: `Done: ${result.status}` }),
      approvalText: ({ order }: { order: string }) => `Cancel ${order}?`,
      danger: true,
      expose: "title",
    },
    // @ts-expect-error: what a tool does is not Parley's.
    refund: { execute: () => 1 },
  },
});
