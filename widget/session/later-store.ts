import { lazy } from "../loading/lazy.ts";
import type { ConversationStore } from "./store.ts";

const stores = lazy(() => import("./store.ts"), "IndexedDbStore");
const reading = lazy(() => import("./read-row.ts"), "read");

/** The store of a server. Its code comes beside the empty chat; where that cannot be loaded, nothing is kept. */
export function laterStore(server: URL): ConversationStore {
  let store: ConversationStore | undefined;
  const loaded = async () => {
    const { IndexedDbStore } = await stores.load();
    store ??= new IndexedDbStore(server);
    return store;
  };
  return {
    list: async () => (await loaded()).list(),
    load: async (id) => {
      // Beside it: the store would ask for that only when it is there itself.
      reading.load().catch(() => undefined);
      return (await loaded()).load(id);
    },
    save: async (...what) => (await loaded()).save(...what),
    claim: async (...what) => (await loaded()).claim(...what),
    queue: async (...what) => (await loaded()).queue(...what),
    delete: async (id) => (await loaded()).delete(id),
    copy: async (id) => (await loaded()).copy(id),
  };
}
