// Rows of x against rows of a weight matrix: the inner loop of the GEMM and of the LoRA shrink.
#pragma once
#include "vec.h"

// out[t * out_stride + r] = x[t] . w[r] for T x R pairs over k elements. The order of each sum depends on k alone.
template <int T, int R, class W>
INLINE void dots(const float *x, int64_t x_stride, const W *w, int64_t k, float *out, int64_t out_stride) {
    f32x16 acc[T][R];
    for (int t = 0; t < T; t++)
        for (int r = 0; r < R; r++) acc[t][r] = all(0.0f);
    int64_t i = 0;
    for (; i + LANES <= k; i += LANES) {
        f32x16 wide[R];
        for (int r = 0; r < R; r++) wide[r] = load16(w + r * k + i);
        for (int t = 0; t < T; t++) {
            f32x16 row = load16(x + t * x_stride + i);
            for (int r = 0; r < R; r++) acc[t][r] += row * wide[r];
        }
    }
    if (i < k)
        for (int t = 0; t < T; t++)
            for (int r = 0; r < R; r++)
                acc[t][r] += load_some(x + t * x_stride + i, int(k - i)) * load_some(w + r * k + i, int(k - i));
    for (int t = 0; t < T; t++)
        for (int r = 0; r < R; r++) out[t * out_stride + r] = sum16(acc[t][r]);
}

// The same for any number of rows of w.
template <int T, class W>
INLINE void dots_of(const float *x, int64_t x_stride, const W *w, int64_t k, int64_t rows, float *out, int64_t out_stride) {
    constexpr int WIDE = T == 1 ? 8 : 4;
    int64_t r = 0;
    for (; r + WIDE <= rows; r += WIDE) dots<T, WIDE>(x, x_stride, w + r * k, k, out + r, out_stride);
    for (; r < rows; r++) dots<T, 1>(x, x_stride, w + r * k, k, out + r, out_stride);
}
