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
        resolve(new Thread(worker));
      };
    } catch {
      onPage();
    }
  });
}

class Thread {
  constructor(worker) {
    Object.assign(this, { worker, asked: 0, open: new Map() });
    worker.onmessage = ({ data: { id, found, error } }) => {
      const { answered, failed } = this.open.get(id);
      this.open.delete(id);
      if (error) failed(Object.assign(new Error(error.message), { name: error.name }));
      else answered(found);
    };
  }

  ask(method, asked, { signal }) {
    signal?.throwIfAborted();
    const id = ++this.asked;
    return new Promise((answered, failed) => {
      this.open.set(id, { answered, failed });
      this.worker.postMessage({ id, method, asked });
      signal?.addEventListener("abort", () => this.worker.postMessage({ id, method: "stop" }));
    });
  }
}
