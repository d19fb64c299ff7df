import { fileURLToPath } from "node:url";
import { defineAgent } from "parley-agent";

export default defineAgent({
  name: "Spoke & Chain",
  agent: "Workshop desk",
  model: "demo",
  instructions: "You work at the desk of a bicycle shop.",
  mcp: {
    shop: {
      command: "node",
      args: [fileURLToPath(new URL("shop.mjs", import.meta.url))],
      // It says that the tool stock only reads.
      needsApproval: "unless-read-only",
    },
  },
  // What people read of the tools, by the names that the model knows them by.
  toolTexts: {
    shop__stock: { running: ({ bike }) => `Looking for a ${bike}` },
    shop__reserve: { approvalText: ({ bike }) => `Reserve a ${bike} until the evening?` },
  },
  chat: {
    welcome: "Spoke & Chain, good day! Bikes?",
    suggestions: ["What is in stock?", "Reserve a bike for me"],
  },
});
