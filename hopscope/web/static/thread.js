// The engine of a saved page: in a worker, so that the page stays responsive while it computes, or
// on the page itself if the browser allows no worker.

/** A promise of the engine on the page's data: `ask("example", asked, {signal})`, or "ablate". */
export function engineOf(carried) {
  const parts = globalThis.hopscopeEngine;
  return new Promise((resolve) => {
    const onPage = () => resolve(parts().onPage(carried));
    try {
      const url = URL.createObjectURL(new Blob([`(${parts})().serve();`], { type: "text/javascript" }));
      const worker = new Worker(url);
      worker.onerror = onPage;
      worker.onmessage = () => {
        worker.onerror = null;
        worker.postMessage({ method: "open", asked: carried });
        resolve(inWorker(worker));
      };
    } catch {
      onPage();
    }
  });
}

/** An engine that a worker runs. */
function inWorker(worker) {
  const ask = (method, asked, { signal }) => {
    signal?.throwIfAborted();
    const { port1: own, port2: its } = new MessageChannel();
    return new Promise((answered, failed) => {
      own.onmessage = ({ data: { found, error } }) => {
        own.close();
        if (error) failed(Object.assign(new Error(error.message), { name: error.name }));
        else answered(found);
      };
      worker.postMessage({ method, asked }, [its]);
      signal?.addEventListener("abort", () => own.postMessage("stop"));
    });
  };
  return { ask };
}
