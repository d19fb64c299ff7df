import { defineAgent, responses } from "parley-agent";

export default defineAgent({
  name: "Acme Support",
  accepts: ["image/png"],
  run: responses(process.env.AGENT_URL ?? "http://127.0.0.1:8000/responses"),
});
