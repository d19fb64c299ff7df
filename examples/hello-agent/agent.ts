import { defineAgent } from "parley-agent";

export default defineAgent({
  name: "Hello",
  agent: "Friendly",
  // Built in, no key needed. For a real one write "openai/gpt-5.2" here and OPENAI_API_KEY=sk-...
  // into a file called .env beside this one.
  model: "demo",
  instructions: "You are friendly and brief.",
  chat: { welcome: "Hello! What can I do for you?", suggestions: ["What are you?"] },
});
