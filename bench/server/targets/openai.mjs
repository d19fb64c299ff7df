/** The `openai` package on bare `node:http` and `ws`. */

import { encode, frame } from "./common.mjs";
import * as model from "./openai-model.mjs";
import { servePlain } from "./plain-http.mjs";

servePlain(model, {
  response: (res) => ({ write: (type, data) => res.write(frame(type, data)) }),
  socket: (socket) => ({ write: (type, data) => socket.send(encode(type, data)) }),
});
