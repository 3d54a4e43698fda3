// Reads a safetensors file into typed arrays: eight bytes that say how long the header is, the
// header (JSON), then the numbers. Every place in the file is checked before anything is read.

const LONGEST_HEADER = 100_000_000;

const BYTES = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U32: 4,
  U16: 2,
  U8: 1,
  BOOL: 1,
};

const NUMBERS = {
  F64: (bytes) => new Float64Array(bytes),
  F32: (bytes) => new Float32Array(bytes),
  F16: (bytes) => Float32Array.from(new Uint16Array(bytes), (half) => halves()[half]),
  BF16: (bytes) => new Float32Array(Uint32Array.from(new Uint16Array(bytes), upper).buffer),
  I64: (bytes) => Float64Array.from(new BigInt64Array(bytes), exactly),
  I32: (bytes) => new Int32Array(bytes),
  I16: (bytes) => new Int16Array(bytes),
  I8: (bytes) => new Int8Array(bytes),
  U32: (bytes) => new Uint32Array(bytes),
  U16: (bytes) => new Uint16Array(bytes),
  U8: (bytes) => new Uint8Array(bytes),
  BOOL: (bytes) => new Uint8Array(bytes),
};

let table = null;

/** The value of each of the 65,536 numbers of 16 bits, as float16 has them. */
function halves() {
  if (table === null) {
    table = new Float32Array(1 << 16);
    for (let bits = 0; bits < 1 << 16; bits++) {
      const sign = bits >> 15 ? -1 : 1;
      const exponent = (bits >> 10) & 31;
      const fraction = bits & 1023;
      if (exponent === 31) table[bits] = fraction ? NaN : sign * Infinity;
      else if (exponent === 0) table[bits] = sign * fraction * 2 ** -24;
      else table[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
    }
  }
  return table;
}

/** A bfloat16 is the upper half of a float32. */
function upper(half) {
  return half * 65536;
}

function exactly(integer) {
  const number = Number(integer);
  if (!Number.isSafeInteger(number)) {
    throw new Error(`the file holds the whole number ${integer}; expected at most 2^53`);
  }
  return number;
}

/** The file's tensors, by name, as {shape, data}, and the texts of its metadata. */
export function readSafetensors(buffer) {
  const { header, start } = readHeader(buffer);
  const tensors = new Map();
  let metadata = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") metadata = entry;
    else tensors.set(name, readTensor(buffer, start, name, entry));
  }
  return { metadata, tensors };
}

function readHeader(buffer) {
  if (buffer.byteLength < 8) {
    throw new Error(`the file has ${buffer.byteLength} bytes; a safetensors file has at least 8`);
  }
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  if (length > LONGEST_HEADER || 8 + length > buffer.byteLength) {
    throw new Error(
      `the header is said to have ${length} bytes; the file has ${buffer.byteLength - 8} after it`,
    );
  }
  const text = new TextDecoder().decode(new Uint8Array(buffer, 8, length));
  let header = null;
  try {
    header = JSON.parse(text);
  } catch (error) {
    throw new Error(`the header is no JSON: ${error.message}`);
  }
  if (header === null || typeof header !== "object" || Array.isArray(header)) {
    throw new Error("the header is no table of tensors");
  }
  return { header, start: 8 + length };
}

function readTensor(buffer, start, name, entry) {
  const { dtype, shape, data_offsets: offsets } = entry ?? {};
  if (!Object.hasOwn(BYTES, dtype)) {
    throw new Error(`${name} has numbers of type ${dtype}; known are ${Object.keys(BYTES)}`);
  }
  const whole = (list) => Array.isArray(list) && list.every((n) => Number.isSafeInteger(n) && n >= 0);
  if (!whole(shape) || !whole(offsets) || offsets.length !== 2) {
    throw new Error(`${name} has no shape and place in whole numbers`);
  }
  const [from, to] = offsets;
  const bytes = BYTES[dtype] * shape.reduce((product, size) => product * size, 1);
  if (to - from !== bytes) {
    throw new Error(`${name} has ${to - from} bytes; its shape [${shape}] of ${dtype} takes ${bytes}`);
  }
  if (start + to > buffer.byteLength) {
    throw new Error(`${name} ends at byte ${to}; the file has ${buffer.byteLength - start} of data`);
  }
  // A copy, since typed arrays must begin at a multiple of their numbers' size.
  return { shape, data: NUMBERS[dtype](buffer.slice(start + from, start + to)) };
}
