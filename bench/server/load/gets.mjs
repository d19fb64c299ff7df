/** GET requests over bare connections: node's own client costs more than the servers that are measured here. */

import { connect } from "node:net";
import { now } from "../clock.mjs";

/** As many answers as come in `ms` on `lanes` connections, one request at a time on each. */
export async function gets({ base, path, lanes, ms }) {
  const { hostname, port, host } = new URL(base);
  const request = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept-Encoding: br, gzip\r\n\r\n`;
  const begin = now();
  const lane = () => new Lane({ hostname, port, request, until: begin + ms }).done;
  const counts = await Promise.all(Array.from({ length: lanes }, lane));
  const count = counts.reduce((sum, one) => sum + one.answers, 0);
  const bytes = counts.reduce((sum, one) => sum + one.bytes, 0);
  return { count, seconds: (now() - begin) / 1000, bytes };
}

/** One connection. Reads heads and lengths only. */
class Lane {
  #socket;
  #request;
  #until;
  #head = "";
  /** Bytes of the body that are still to come; `undefined` while the head is. */
  #left;
  #answers = 0;
  #bytes = 0;

  constructor({ hostname, port, request, until }) {
    this.#request = request;
    this.#until = until;
    this.#socket = connect(Number(port), hostname);
    this.#socket.setNoDelay(true);
    this.done = new Promise((resolve, reject) => {
      this.#socket.on("error", reject);
      this.#socket.on("close", () => {
        if (now() >= until) resolve({ answers: this.#answers, bytes: this.#bytes });
        else reject(new Error("the server closed a connection between two requests"));
      });
    });
    this.#socket.on("connect", () => this.#socket.write(request));
    this.#socket.on("data", (bytes) => {
      try {
        this.#take(bytes);
      } catch (error) {
        this.#socket.destroy(error);
      }
    });
  }

  #take(bytes) {
    this.#bytes += bytes.length;
    const body = this.#left === undefined ? this.#readHead(bytes) : bytes.length;
    if (this.#left === undefined) return;
    this.#left -= body;
    if (this.#left > 0) return;
    this.#left = undefined;
    this.#answers++;
    if (now() >= this.#until) this.#socket.destroy();
    else this.#socket.write(this.#request);
  }

  /** Returns how many bytes of the body came with the end of the head. */
  #readHead(bytes) {
    const before = this.#head.length;
    this.#head += bytes.latin1Slice();
    const end = this.#head.indexOf("\r\n\r\n");
    if (end === -1) return 0;
    const head = this.#head.slice(0, end);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (!head.startsWith("HTTP/1.1 200") || length === undefined) {
      throw new Error(`not an answer with a length: ${head.slice(0, 300)}`);
    }
    this.#left = Number(length);
    this.#head = "";
    return bytes.length - (end + 4 - before);
  }
}
