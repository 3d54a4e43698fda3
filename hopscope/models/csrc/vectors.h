#pragma once

/* Definitions for all kernels: bf16 numbers, sixteen at a time.

   The kernels are called from fused_blocks.py, which checks the requirements: widths are multiples of LANES (of
   BLOCK for affine maps), and attention does not exceed LONGEST and WIDEST. OpenMP is not linked: its calls bind
   to the library that torch has loaded, so that both share one pool of threads. */

#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>

typedef uint16_t bf16;

enum { LANES = 16 };

#define INLINE static inline __attribute__((always_inline))
#define UNROLLED _Pragma("GCC unroll 16") /* so that arrays of sums stay in registers */
#define HIDDEN __attribute__((visibility("hidden")))
#define ALIGNED __attribute__((aligned(64)))

/* Memory for use during a call. It is not checked for NULL: Linux overcommits memory. */
INLINE void *workspace(long bytes) { return aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64); }

INLINE int least(int a, int b) { return a < b ? a : b; }
INLINE int most(int a, int b) { return a > b ? a : b; }
INLINE int vectors_of(int n) { return (n + LANES - 1) / LANES; }
INLINE __mmask16 first(int n) { return n >= LANES ? 0xffff : (__mmask16)((1u << most(0, n)) - 1); }

INLINE __m512 all(float x) { return _mm512_set1_ps(x); }
INLINE __m256i get(const bf16 *from) { return _mm256_loadu_si256((const __m256i *)from); }
INLINE __m512i low(__m256i x) { return _mm512_cvtepu16_epi32(x); }
INLINE __m512i high(__m256i x) { return _mm512_slli_epi32(low(x), 16); }
INLINE __m512 load(const bf16 *from) { return _mm512_castsi512_ps(high(get(from))); }
INLINE __m256i rounded(__m512 x) { return (__m256i)_mm512_cvtneps_pbh(x); }
INLINE void store_both(bf16 *to, __m512 x, __m512 next) {
    _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(next, x));
}
INLINE void store(bf16 *to, __m512 x) { _mm256_storeu_si256((__m256i *)to, rounded(x)); }

/* exp(x) = 2^n 2^f with |f| <= 1/2; the relative error is at most 6e-6. */
INLINE __m512 exponential(__m512 x) {
    __m512 power = _mm512_mul_ps(x, all(1.44269504f));
    __m512 whole = _mm512_roundscale_ps(power, 0);
    __m512 f = _mm512_sub_ps(power, whole);
    __m512 y = _mm512_fmadd_ps(all(1.3333558e-3f), f, all(9.6181291e-3f));
    y = _mm512_fmadd_ps(y, f, all(5.5504109e-2f));
    y = _mm512_fmadd_ps(y, f, all(2.4022651e-1f));
    y = _mm512_fmadd_ps(y, f, all(6.9314718e-1f));
    y = _mm512_fmadd_ps(y, f, all(1));
    return _mm512_scalef_ps(y, whole);
}
