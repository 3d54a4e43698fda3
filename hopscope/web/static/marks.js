// How answers are marked: the loss of every hop, over the questions that the roles describe.

const NORMAL_95 = 1.959964;

/** The loss of each hop in one example, the mean over its answers; `outputs` [read, width]. */
export function hopLosses(exam, example, outputs) {
  const { asked, answers } = exam.tables;
  const losses = new Float64Array(asked);
  for (let answer = 0; answer < answers; answer++) {
    for (let hop = 0; hop < asked; hop++) {
      losses[hop] += answerLoss(exam, example, answer, hop, outputs) / answers;
    }
  }
  return losses;
}

/** The loss of one answer: the mean square of the error, or the cross-entropy. */
function answerLoss(exam, example, answer, hop, outputs) {
  const given = answerOf(exam, example, answer, hop, outputs);
  const { tables } = exam;
  const at = ((example * tables.answers + answer) * tables.asked + hop) * tables.dim;
  if (tables.tokens) return logSum(given) - given[exam.targets[at]];
  let square = 0;
  for (let k = 0; k < tables.dim; k++) square += (given[k] - exam.targets[at + k]) ** 2;
  return square / tables.dim;
}

/** What the model says: a vector, or the logits of all classes. */
function answerOf(exam, example, answer, hop, outputs) {
  const { tables } = exam;
  const size = tables.tokens ? tables.classes : tables.dim;
  const from = rowOf(exam, example, answer) * tables.asked * size + hop * size;
  return outputs.subarray(from, from + size);
}

/** Where an answer is read: the number of its row among those that are read. */
function rowOf(exam, example, answer) {
  const { tables, length, read } = exam;
  if (tables.way === "vector") return answer * tables.known + tables.known - 1;
  if (tables.way === "khop") return read - 1;
  const query = tables.roles.indexOf("query");
  for (let row = 0, seen = 0; row < read; row++) {
    if (exam.role[example * length + length - read + row] !== query) continue;
    if (seen++ === answer) return row;
  }
  throw new Error(`example ${example} has no query ${answer}`);
}

export function logSum(logits) {
  const most = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  return most + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - most), 0));
}

/** Mean and half width (95 %) of every hop, of losses [example, hop]. */
export function summary(losses, count, hops) {
  const mean = new Array(hops).fill(0);
  const half = new Array(hops).fill(0);
  for (let n = 0; n < count * hops; n++) mean[n % hops] += losses[n] / count;
  for (let n = 0; n < count * hops; n++) half[n % hops] += (losses[n] - mean[n % hops]) ** 2;
  const width = (square) => (count > 1 ? NORMAL_95 * Math.sqrt(square / (count - 1) / count) : 0);
  return { mean, half: half.map(width) };
}
