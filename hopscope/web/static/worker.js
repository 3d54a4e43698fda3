// Runs the engine in a worker: each request is a message with a port, to which its answer goes, and
// from which it may be stopped. A saved page has this module and all that it imports as one
// function, hopscopeEngine (hopscope/web/bundle.py).

import { Engine } from "./engine.js";

/** Answer messages from now on; the first one has the page's data. */
export function serve() {
  let engine = null;
  globalThis.onmessage = async ({ data: { method, asked }, ports: [port] }) => {
    if (method === "open") engine = new Engine(asked);
    else {
      const stop = new AbortController();
      port.onmessage = () => stop.abort();
      try {
        port.postMessage({ found: await engine[method](asked, { signal: stop.signal }) });
      } catch ({ name, message }) {
        port.postMessage({ error: { name, message } });
      }
    }
  };
  globalThis.postMessage("ready");
}

/** An engine on the page itself. */
export function onPage(carried) {
  const engine = new Engine(carried);
  return { ask: (method, asked, options) => engine[method](asked, options) };
}
