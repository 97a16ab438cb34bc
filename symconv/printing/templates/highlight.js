// Colours for generated C and CUDA: a small tokenizer; every piece is put in as text.

const C_TOKENS = new RegExp([
  /(?<comment>\/\/[^\n]*|\/\*[^]*?(?:\*\/|$))/,
  /(?<preprocessor>^[ \t]*#(?:[^\n\\]|\\[^])*)/,
  /(?<string>"(?:[^"\\\n]|\\[^])*"?|'(?:[^'\\\n]|\\[^])*'?)/,
  /(?<number>\b0[xX][\da-fA-F.]+(?:[pP][+-]?\d+)?\w*|\b\d+\.?\d*(?:[eE][+-]?\d+)?\w*|\.\d+(?:[eE][+-]?\d+)?\w*)/,
  /(?<word>[A-Za-z_]\w*)/,
].map((each) => each.source).join("|"), "gm");
const C_KEYWORDS = new Set(("alignas asm auto break case const constexpr continue default do else enum extern for goto if inline register restrict return " +
  "sizeof static struct switch template typedef union volatile while __global__ __device__ __shared__ __restrict__ __launch_bounds__ " +
  "__forceinline__ __syncthreads threadIdx blockIdx blockDim gridDim").split(" "));
const C_TYPES = new Set("bool char double float half int long short signed size_t unsigned void vec nv_bfloat16 ptrdiff_t uintptr_t intptr_t".split(" "));

function tokenClass(groups) {
  for (const name of ["comment", "preprocessor", "string", "number"]) if (groups[name] !== undefined) return name;
  if (C_KEYWORDS.has(groups.word)) return "keyword";
  return C_TYPES.has(groups.word) || /^u?int\d+_t$|^__m\d+[id]?$|^v\d+[a-z]+\d*$/.test(groups.word) ? "type" : "";
}

function highlighted(source) {
  const code = make("code");
  let last = 0;
  for (const match of source.matchAll(C_TOKENS)) {
    const name = tokenClass(match.groups);
    if (!name) continue;
    code.append(source.slice(last, match.index), make("span", { class: name }, match[0]));
    last = match.index + match[0].length;
  }
  code.append(source.slice(last));
  return make("pre", { tabindex: "0" }, code);
}
