/** The floor in its quicker form: what comes in one turn of the event loop leaves in one write. */

import { encode, frame } from "./common.mjs";
import * as model from "./floor-model.mjs";
import { servePlain } from "./plain-http.mjs";

servePlain(model, {
  response(res) {
    let frames = "";
    const flush = () => {
      if (!res.destroyed) res.write(frames);
      frames = "";
    };
    return {
      write(type, data) {
        if (frames === "") queueMicrotask(flush);
        frames += frame(type, data);
      },
    };
  },
  socket(socket, connection) {
    let isCorked = false;
    const flush = () => {
      isCorked = false;
      connection.uncork();
    };
    return {
      write(type, data) {
        if (!isCorked) {
          isCorked = true;
          connection.cork();
          queueMicrotask(flush);
        }
        socket.send(encode(type, data));
      },
    };
  },
});
