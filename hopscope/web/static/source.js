// @ts-check
// Where the page's data comes from: a server, or (bundled.js) the page itself. Both answer the same
// questions, asynchronously; the last argument may be {signal}, which gives a question up.
//
//   runs(since)                  {cursor, rows}: rows that changed since the cursor
//   run(id)                      the description of a run; {seed} says of which model of a fleet
//   arrays(id, name, seed)       {about, tensors}: tensors is a Map of {shape, data}; {step} says at
//                                which checkpoint alone (contents)
//   example(id, question)        the same; about tells tokens and answers
//   ablate(id, question)         losses of the model as it is, and with changes
//   overTime(id, question)       the same at every checkpoint: an asynchronous iterator
//   costs(id, question)          one answer for each head and path: an asynchronous iterator
//   views(id), keep(id, name, view), forget(id, name)
//   opens                        what the page looks at if its address says nothing, beside a run
//   counts                       how many examples losses are measured on, one count after the other
//
// What cannot be answered is an error whose message is one line for the reader of the page.

import { remembered } from "./remember.js";
import { unpacked } from "./safetensors.js";

/** @type {any} */
let registered = null;
let left = false; // does the reader go on to another page?

/** Have this answer instead of a server. */
export function answerWith(source) {
  registered = source;
}

/** Whoever answers this page. */
export async function openSource() {
  return registered ?? new Server(await takeToken());
}

/** Does this address hold what gives access to a server? */
export const gives = (address) => /^#(once|token)=/.test(address);

/** The token, for the word of the address (#once=…&/run/…), which the server takes once; or the token
 *  itself, where somebody wrote it there (#token=…). The address keeps neither; the token is kept for
 *  this tab alone, so that the page can be loaded again (where the browser keeps nothing, it cannot). */
async function takeToken() {
  const [, way, word, rest] = /^#(once|token)=([^&]*)&?(.*)$/s.exec(location.hash) ?? [];
  const kept = (token) => remembered("token", token, "sessionStorage") ?? "";
  if (!way) return kept();
  history.replaceState(null, "", `${location.pathname}${location.search}${rest ? `#${rest}` : ""}`);
  const token = way === "token" ? word : await exchanged(word);
  return kept(token) || token;
}

/** The token for a word; empty if it is refused, which the server says again to the next question. */
async function exchanged(word) {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ word });
  const answer = await fetch("api/token", { method: "POST", headers, body }).catch(() => null);
  return answer?.ok ? (await answer.json()).token : "";
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

/** What is read from the server; where that fails, a line that says so. Where the page is left, what it
 *  asked is given up, which some browsers (Firefox) call a failure of the network. */
async function allOf(reading, told = "the answer broke off") {
  try {
    const found = await reading;
    left = false; // it is still there
    return found;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (left) throw new DOMException("the page was left", "AbortError");
    throw failure(`${told}: is \`hopscope view\` still running?`);
  }
}

/** The server's own words, or its number where it has none. */
async function refused(answer) {
  const told = await answer.json().catch(() => null);
  return failure(told?.error ?? `the server answered ${answer.status} without a word`, answer.status);
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    throw failure("the answer broke off in the middle of a line: ask again");
  }
}

/** The lines of a stream of bytes; the last counts even without its end. */
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
    await reader.cancel().catch(() => {}); // whoever stops to listen gives the question up
  }
}
