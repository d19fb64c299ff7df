import "parley-agent/widget";

const chat = document.querySelector("agent-chat");

chat.toolRenderers = {
  get_weather({ status, output }) {
    if (status !== "completed") return undefined; // the usual row
    const { city, celsius } = JSON.parse(output);
    return Object.assign(document.createElement("p"), { textContent: `${city}: ${celsius} °C` });
  },
};

chat.addEventListener("agent-chat-done", ({ text }) => console.log(text));
