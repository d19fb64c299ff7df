/** The least that answers a request, once it has imported what it is to serve: what a start of Node itself costs. */

import { createServer } from "node:http";

const [project] = process.argv.slice(2);
if (project !== undefined) await import(project);
const server = createServer((_req, res) => {
  res.writeHead(200, { "content-type": "application/json" });
  res.end('{"status":"ok"}');
});
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1");
