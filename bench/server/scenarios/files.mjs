/** What a visitor's browser loads. */

const LANES = 16;
const PATHS = { page: "/", widget: "/widget.js", health: "/health" };

export const files = {
  name: "files",
  title: "GET on 16 connections, compressed",
  transports: ["http"],
  skips: ["openai", "floor-batch", "ai-sdk"],
  metrics: {
    page: ["/ per second", "1/s", "more"],
    pageCpu: ["/ CPU", "µs"],
    widget: ["/widget.js per second", "1/s", "more"],
    widgetCpu: ["/widget.js CPU", "µs"],
    health: ["/health per second", "1/s", "more"],
    healthCpu: ["/health CPU", "µs"],
  },
  async run({ base, load, measured, times }) {
    const results = {};
    for (const [name, path] of Object.entries(PATHS)) {
      const spec = { base, path, lanes: LANES };
      await load.call("gets", { ...spec, ms: times.warmMs / 2 });
      const { value, cpu } = await measured(() => load.call("gets", { ...spec, ms: times.filesMs }));
      results[name] = value.count / value.seconds;
      results[`${name}Cpu`] = cpu / value.count;
    }
    return results;
  },
};
