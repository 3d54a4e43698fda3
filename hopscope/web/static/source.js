// @ts-check
// The data source of the page: a server, or (bundled.js) the page itself. Both have these methods,
// which are asynchronous; the last argument may be {signal}, to abort a request.
//
//   runs(since)                  {cursor, rows}: rows that changed since the cursor
//   run(id)                      the description of a run; {seed}: the model of a fleet
//   arrays(id, name, seed)       {about, tensors}: tensors is a Map of {shape, data}; {step}: only
//                                one checkpoint (contents)
//   example(id, question)        {about, tensors}; about has tokens and answers
//   ablate(id, question)         losses of the unchanged model, and with changes
//   overTime(id, question)       the same at every checkpoint: an asynchronous iterator
//   costs(id, question)          one answer for each head and path: an asynchronous iterator
//   views(id), keep(id, name, view), forget(id, name)
//   opens                        the initial state, besides the run, if the address has none
//   counts                       numbers of examples for losses, used one after the other
//
// An error's message is one line for the user of the page.

import { remembered } from "./remember.js";
import { unpacked } from "./safetensors.js";

/** @type {any} */
let registered = null;
let left = false; // has the user left the page?

/** Use this source instead of a server. */
export function answerWith(source) {
  registered = source;
}

/** The data source of this page. */
export async function openSource() {
  return registered ?? new Server(await takeToken());
}

/** Does this address hold a token, or a word for one? */
export const gives = (address) => /^#(once|token)=/.test(address);

/** The token: exchanged for the word in the address (#once=…&/run/…), which is valid once, or
 *  written there by the user (#token=…). Both are removed from the address; the token is stored for
 *  this tab only, so that the page can be reloaded (if the browser stores anything). */
async function takeToken() {
  const [, way, word, rest] = /^#(once|token)=([^&]*)&?(.*)$/s.exec(location.hash) ?? [];
  const kept = (token) => remembered("token", token, "sessionStorage") ?? "";
  if (!way) return kept();
  history.replaceState(null, "", `${location.pathname}${location.search}${rest ? `#${rest}` : ""}`);
  const token = way === "token" ? word : await exchanged(word);
  return kept(token) || token;
}

/** Exchange a word for the token; empty if it is refused (the next request then shows the error). */
async function exchanged(word) {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ word });
  const answer = await fetch("api/token", { method: "POST", headers, body }).catch(() => null);
  return answer?.ok ? (await answer.json()).token : "";
}

/** Was the request refused (and not the server unable to answer now)? */
export function isRefusal({ status = 400 }) {
  return status >= 400 && status < 429;
}

/** A server of `hopscope view`. */
export class Server {
  live = true;
  counts = [256, 1024];
  opens = {};

  constructor(token) {
    this.token = token;
    for (const goes of ["beforeunload", "pagehide"]) addEventListener(goes, () => (left = true));
    addEventListener("pageshow", () => (left = false)); // the browser may have kept the page as it was
  }

  async runs(since = "", options = {}) {
    return this.json("GET", since ? `runs?since=${encodeURIComponent(since)}` : "runs", options);
  }

  async run(id, { seed = null, ...options } = {}) {
    return this.json("GET", path(id) + query({ seed }), options);
  }

  async arrays(id, name, seed = null, { step = null, ...options } = {}) {
    return this.file("GET", path(id, "arrays", name) + query({ seed, step }), options);
  }

  async example(id, question, options = {}) {
    return this.file("POST", path(id, "example"), { ...options, body: question });
  }

  async ablate(id, question, options = {}) {
    return this.json("POST", path(id, "ablate"), { ...options, body: question });
  }

  overTime(id, question, options = {}) {
    return this.lines(path(id, "over-time"), question, options);
  }

  costs(id, question, options = {}) {
    return this.lines(path(id, "costs"), question, options);
  }

  async views(id, options = {}) {
    return this.json("GET", path(id, "views"), options);
  }

  async keep(id, name, view, options = {}) {
    await this.ask("PUT", path(id, "views", name), { ...options, body: view });
  }

  async forget(id, name, options = {}) {
    await this.ask("DELETE", path(id, "views", name), { ...options, body: {} });
  }

  async json(...asked) {
    const answer = await this.ask(...asked);
    return allOf(answer.json());
  }

  async file(...asked) {
    const answer = await this.ask(...asked);
    return unpacked(await allOf(answer.arrayBuffer()));
  }

  async *lines(where, question, options) {
    const answer = await this.ask("POST", where, { ...options, body: question });
    for await (const line of linesOf(answer.body)) {
      const found = parsed(line);
      if (found.error !== undefined) throw failure(found.error, found.status);
      yield found;
    }
  }

  async ask(method, where, { body, signal }) {
    const headers = { Authorization: `Bearer ${this.token}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const text = body === undefined ? undefined : JSON.stringify(body);
    const answer = await allOf(
      fetch(`api/${where}`, { method, headers, body: text, signal }),
      "the server does not answer",
    );
    if (!answer.ok) throw await refused(answer);
    return answer;
  }
}

function path(id, ...rest) {
  return ["runs", id, ...rest].map(encodeURIComponent).join("/");
}

function query(numbers) {
  const given = Object.entries(numbers).filter(([, number]) => number !== null);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

function failure(text, status = 0) {
  return Object.assign(new Error(text), { status });
}

/** Await a promise of the server's answer; a failure becomes an error with one line. When the user
 *  leaves the page, requests are aborted, which Firefox reports as a failure of the network. */
async function allOf(reading, told = "the answer broke off") {
  try {
    const found = await reading;
    left = false; // the user stayed
    return found;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (left) throw new DOMException("the page was left", "AbortError");
    throw failure(`${told}: is \`hopscope view\` still running?`);
  }
}

/** The error of a refused request: the server's text, or its status if there is no text. */
async function refused(answer) {
  const told = await answer.json().catch(() => null);
  return failure(told?.error ?? `the server answered ${answer.status} without a message`, answer.status);
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    throw failure("the answer broke off in the middle of a line: ask again");
  }
}

/** The lines of a byte stream; the last one needs no line break. */
async function* linesOf(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await allOf(reader.read());
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line) yield line;
    }
    if (rest) yield rest;
  } finally {
    await reader.cancel().catch(() => {}); // abort the request if the consumer stops
  }
}
