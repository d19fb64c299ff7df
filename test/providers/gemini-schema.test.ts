import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { geminiSchema } from "../../server/providers/gemini/schema.ts";

test("what OpenAPI's schema does not have is left out, and what it has stays", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: {
      count: { type: "integer", minimum: 0, exclusiveMaximum: 10, default: 3 },
      when: { type: "string", format: "date-time", description: "A time." },
      site: { type: "string", format: "uri", minLength: 1, pattern: "^https:" },
      tags: { type: "array", items: { type: "string", contentEncoding: "x" }, uniqueItems: true },
    },
    required: ["count"],
    additionalProperties: false,
  };
  assert.deepEqual(geminiSchema(schema), {
    type: "object",
    properties: {
      count: { type: "integer", minimum: 0 },
      when: { type: "string", format: "date-time", description: "A time." },
      site: { type: "string", minLength: 1, pattern: "^https:" },
      tags: { type: "array", items: { type: "string" } },
    },
    required: ["count"],
  });
});

test("a property that is named like a keyword is kept", () => {
  const schema = {
    type: "object",
    properties: { default: { type: "string" }, $ref: { type: "null" } },
  };
  assert.deepEqual(Object.keys(geminiSchema(schema).properties as object), ["default", "$ref"]);
});

test("a constant is a choice of one, and choices of other types are told in words", () => {
  assert.deepEqual(geminiSchema({ const: "a" }), { type: "string", enum: ["a"] });
  assert.deepEqual(geminiSchema({ type: "integer", enum: [1, 2], description: "Size." }), {
    type: "integer",
    description: "Size. One of: 1, 2.",
  });
});

test("null among the types or the alternatives makes it nullable", () => {
  const nullable = { type: "string", nullable: true };
  assert.deepEqual(geminiSchema({ type: ["string", "null"] }), nullable);
  assert.deepEqual(geminiSchema({ anyOf: [{ type: "string" }, { type: "null" }] }), nullable);
  assert.deepEqual(geminiSchema({ oneOf: [{ type: "string" }, { type: "number" }] }), {
    anyOf: [{ type: "string" }, { type: "number" }],
  });
});

test("a definition is put where it is referred to, and cut off within itself", () => {
  const schema = {
    type: "object",
    properties: { tree: { $ref: "#/$defs/node", description: "A tree." } },
    $defs: {
      node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } },
    },
  };
  assert.deepEqual(geminiSchema(schema), {
    type: "object",
    properties: {
      tree: { type: "object", description: "A tree.", properties: { next: { type: "object" } } },
    },
  });
});

test("what zod writes for common parameters comes out whole", () => {
  const parameters = z.object({
    city: z.string().describe("Where."),
    days: z.int().positive().max(14).default(1),
    unit: z.enum(["C", "F"]).nullable(),
  });
  assert.deepEqual(geminiSchema(z.toJSONSchema(parameters)), {
    type: "object",
    properties: {
      city: { type: "string", description: "Where." },
      days: { type: "integer", maximum: 14 },
      unit: { type: "string", enum: ["C", "F"], nullable: true },
    },
    required: ["city", "days", "unit"],
  });
});

test("an array without one schema for its elements gets one: Google refuses it otherwise", () => {
  const [integer, text] = [{ type: "integer" }, { type: "string" }];
  for (const [schema, items] of [
    [{ type: "array" }, {}],
    [{ type: "array", items: true }, {}],
    [z.toJSONSchema(z.tuple([z.string(), z.string()])), text],
    [{ type: "array", prefixItems: [integer, text, integer] }, { anyOf: [integer, text] }],
    [
      { type: "array", items: [text, { type: "null" }] },
      { ...text, nullable: true },
    ],
  ] as const) {
    assert.deepEqual(geminiSchema(schema as Record<string, unknown>).items, items);
  }
});

test("what must hold all at once is one schema", () => {
  const schema = {
    type: "object",
    properties: {
      where: {
        description: "A place.",
        allOf: [
          { $ref: "#/definitions/place" },
          { type: "object", properties: { zoom: { type: "integer" } }, required: ["zoom"] },
        ],
      },
    },
    definitions: {
      place: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  };
  assert.deepEqual(geminiSchema(schema).properties, {
    where: {
      type: "object",
      description: "A place.",
      properties: { city: { type: "string" }, zoom: { type: "integer" } },
      required: ["city", "zoom"],
    },
  });
});

test("definitions by the older name are followed, and no name finds what every object has", () => {
  const schema = {
    type: "object",
    properties: {
      city: { $ref: "#/definitions/city" },
      odd: { $ref: "#/definitions/constructor" },
      self: { allOf: [{ $ref: "#/definitions/self" }] },
      tree: { allOf: [{ $ref: "#/definitions/tree" }] },
    },
    definitions: {
      city: { type: "string" },
      self: { allOf: [{ $ref: "#/definitions/self" }] },
      tree: { type: "object", properties: { next: { allOf: [{ $ref: "#/definitions/tree" }] } } },
    },
  };
  assert.deepEqual(geminiSchema(schema).properties, {
    city: { type: "string" },
    odd: { type: "object" },
    self: { type: "object" },
    tree: { type: "object", properties: { next: { type: "object" } } },
  });
});
