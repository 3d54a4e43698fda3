// Reads safetensors files into typed arrays. A file has eight bytes with the length of the header,
// the header (JSON), then the numbers. Files are from hopscope, or were checked by the server.

const ARRAYS = {
  F64: Float64Array,
  F32: Float32Array,
  F16: Uint16Array,
  I64: BigInt64Array,
  I32: Int32Array,
  I16: Int16Array,
  U16: Uint16Array,
};
const AS_NUMBERS = {
  F16: fromHalves,
  I64: (integers) => Float64Array.from(integers, Number),
};

/** A file's arrays by name, as {shape, data}, and the JSON in its metadata. */
export function unpacked(buffer) {
  const start = 8 + Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, start - 8)));
  const { __metadata__: metadata = {}, ...entries } = header;
  const tensors = new Map();
  for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(entries)) {
    if (!Object.hasOwn(ARRAYS, dtype))
      throw new Error(`${name} has numbers of type ${dtype}; known are ${Object.keys(ARRAYS)}`);
    // A copy, because typed arrays must begin at a multiple of the size of their numbers.
    const [from, to] = offsets.map((offset) => start + offset);
    const data = new ARRAYS[dtype](buffer.slice(from, to));
    tensors.set(name, { shape, data: AS_NUMBERS[dtype]?.(data) ?? data });
  }
  return { about: metadata.json === undefined ? null : JSON.parse(metadata.json), tensors };
}

let values = null; // the value of each of the 65,536 float16 bit patterns

function fromHalves(halves) {
  values ??= Float32Array.from({ length: 1 << 16 }, (_, bits) => valueOf(bits));
  const found = new Float32Array(halves.length);
  for (let n = 0; n < halves.length; n++) found[n] = values[halves[n]];
  return found;
}

function valueOf(bits) {
  const sign = bits >> 15 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Unpack a file in a saved page: base64 of gzip. */
export function unzipped(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let n = 0; n < bytes.length; n++) bytes[n] = letters.charCodeAt(n);
  // Not through a Blob: WebKit lets the worker of a page that was opened from a file read none.
  return new Response(new Response(bytes).body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
