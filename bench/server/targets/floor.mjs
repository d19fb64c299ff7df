/** The floor: reads each token and writes it on at once, with nothing else around it. */

import { encode, frame } from "./common.mjs";
import * as model from "./floor-model.mjs";
import { servePlain } from "./plain-http.mjs";

servePlain(model, {
  response: (res) => ({ write: (type, data) => res.write(frame(type, data)) }),
  socket: (socket) => ({ write: (type, data) => socket.send(encode(type, data)) }),
});
