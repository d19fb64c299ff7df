/** Worst pause of a running stream while four 20 MiB attachments arrive. Server is the built command in its own process; client in this one. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync, mkdirSync } from "node:fs";
import { request } from "node:http";
import { Worker } from "node:worker_threads";
import { WebSocket } from "ws";
const via = process.argv[2] ?? "rest"; // rest|socket|none
const COUNT = 4;
mkdirSync("/tmp/w/limits-exp/proj", { recursive: true });
writeFileSync("/tmp/w/limits-exp/proj/agent.ts", `
import { monitorEventLoopDelay } from "node:perf_hooks";
const h = monitorEventLoopDelay({ resolution: 1 }); h.enable();
export default { name: "P", model: "demo", tools: [{ name: "delay", description: "loop delay", parameters: {type:"object"}, execute: () => { const r = {max: h.max/1e6, p99: h.percentile(99)/1e6, rss: process.memoryUsage().rss/1e6}; h.reset(); return r; } }] };
`);
const child = spawn(process.execPath, ["dist/cli.js", "start", "/tmp/w/limits-exp/proj", "--port", "0"], { stdio: ["ignore", "pipe", "pipe"], env: { PATH: process.env.PATH, PARLEY_RATE_PER_SOCKET: "0" } });
let out = ""; child.stdout.on("data", (d) => { out += d; }); child.stderr.on("data", (d)=>process.env.V && process.stderr.write(d));
while (!/http:\S+\n$/m.test(out)) await new Promise((r) => setTimeout(r, 50));
const url = /(http:\S+)\n/.exec(out)![1]!;
const port = Number(new URL(url).port);
// The watcher: SSE of a long answer, read in its own thread, so that our own uploads do not disturb it.
const watcher = new Worker(`
const { parentPort, workerData: { port } } = require("node:worker_threads");
const { request } = require("node:http");
let last = 0, worst = 0, n = 0, on = false;
parentPort.on("message", (m) => { if (m === "start") { on = true; worst = 0; n = 0; last = performance.now(); } else { on=false; parentPort.postMessage({ worst, n }); } });
function ask() {
  const body = JSON.stringify({ message: "Think about it", stream: true });
  const req = request({ port, host: "127.0.0.1", method: "POST", path: "/api/chat", headers: { "content-type": "application/json", "content-length": body.length } }, (res) => {
    let first = true;
    res.on("data", () => { const now = performance.now(); if (on && !first) { worst = Math.max(worst, now - last); } first = false; last = now; n++; });
    res.on("end", ask);
  });
  req.end(body);
}
ask();
`, { eval: true, workerData: { port } });
const data = Buffer.alloc(20 * 1024 * 1024, 7); data.write("%PDF-1.7\n");
const body = Buffer.from(JSON.stringify({ message: "Look", stream: false, attachments: [{ type: "file", name: "a.pdf", mime_type: "application/pdf", data: data.toString("base64") }] }));
const post = () => new Promise<number>((resolve, reject) => {
  const req = request({ port, host: "127.0.0.1", method: "POST", path: "/api/chat", headers: { "content-type": "application/json", "content-length": body.length } }, (res) => { res.resume(); res.on("end", () => resolve(res.statusCode!)); });
  req.on("error", reject); req.end(body);
});
const sock = async () => { const ws = new WebSocket(`ws://127.0.0.1:${port}/ws/chat`); await once(ws, "open");
  if (via === "frag") { const P=128*1024; for (let i=0;i<body.length;i+=P) { ws.send(body.subarray(i,i+P),{binary:false,fin:i+P>=body.length}); if (ws.bufferedAmount>1e6) await new Promise(r=>setTimeout(r,1)); } }
  else ws.send(body.toString("latin1"));
  for (;;) { const [d] = await once(ws, "message"); const e = JSON.parse(String(d)); if (e.type === "done" || e.type === "error") { ws.close(); return e.type; } } };
const delay = async () => { const r = await fetch(`${url}api/chat`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ message: "delay", stream: false }) }); const b = await r.json() as any; const t = (b.state.conversation_history as any[]).find((m) => m.role === "tool"); return t?.content; };
await new Promise((r) => setTimeout(r, 1000));
for (let round = 0; round < 4; round++) {
  await delay(); 
  watcher.postMessage("start");
  const t0 = performance.now();
  const got = via === "none" ? await new Promise((r) => setTimeout(r, 1500)) : await Promise.all(Array.from({ length: COUNT }, via === "rest" ? post : sock));
  const ms = performance.now() - t0;
  watcher.postMessage("stop"); const [w] = await once(watcher, "message");
  console.log(via, round, JSON.stringify(got), `${ms.toFixed(0)} ms`, JSON.stringify(w), await delay());
}
child.kill("SIGKILL"); await watcher.terminate(); process.exit(0);
