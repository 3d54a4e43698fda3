// Runs the engine in a worker: requests and answers are messages. A saved page has this module and
// all that it imports as one function, hopscopeEngine (hopscope/web/bundle.py).

import { Engine } from "./engine.js";

/** Answer messages from now on. */
export function serve() {
  const open = new Map();
  let engine = null;
  globalThis.onmessage = async ({ data: { id, method, asked } }) => {
    if (method === "open") engine = new Engine(asked);
    else if (method === "stop") open.get(id)?.abort();
    else {
      const stop = new AbortController();
      open.set(id, stop);
      try {
        globalThis.postMessage({ id, found: await engine[method](asked, { signal: stop.signal }) });
      } catch ({ name, message }) {
        globalThis.postMessage({ id, error: { name, message } });
      }
      open.delete(id);
    }
  };
  globalThis.postMessage({ id: 0 });
}

/** An engine on the page itself. */
export function onPage(carried) {
  const engine = new Engine(carried);
  return { ask: (method, asked, options) => engine[method](asked, options) };
}
