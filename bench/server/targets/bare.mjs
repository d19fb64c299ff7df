/** The least that answers a request: what a start of Node itself costs. */

import { createServer } from "node:http";

const server = createServer((_req, res) => {
  res.writeHead(200, { "content-type": "application/json" });
  res.end('{"status":"ok"}');
});
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1");
