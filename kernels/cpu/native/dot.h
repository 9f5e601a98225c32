// Rows of x against rows of a weight matrix: the inner loop of the GEMM and of the LoRA shrink.
#pragma once
#include "vec.h"

// A step takes a vector of each row; the last may be short.
struct Floats {
    static constexpr int STEP = LANES;
    template <class X> INLINE f32x16 get(const X *from) { return load16(from); }
    template <class X> INLINE f32x16 get_some(const X *from, int count) { return load_some(from, count); }
    INLINE f32x16 add(f32x16 sum, f32x16 x, f32x16 w) { return sum + x * w; }
};

template <class W> struct StepOf : Floats {};

#ifdef __AVX512BF16__
template <> struct StepOf<bf16> {
    static constexpr int STEP = 2 * LANES;
    INLINE u32x16 get(const bf16 *from) {
        u32x16 out;
        std::memcpy(&out, from, sizeof out);
        return out;
    }
    INLINE u32x16 get_some(const bf16 *from, int count) {
        u32x16 out = {};
        std::memcpy(&out, from, count * sizeof *from);
        return out;
    }
    INLINE f32x16 add(f32x16 sum, u32x16 x, u32x16 w) {
        return (f32x16)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)w);
    }
};
#endif

// out[t * out_stride + r] = x[t] . w[r] for T x R pairs over k elements. The order of each sum depends on k alone.
template <int T, int R, class W>
INLINE void dots(const W *x, int64_t x_stride, const W *w, int64_t k, float *out, int64_t out_stride) {
    using Step = StepOf<W>;
    f32x16 acc[T][R];
    for (int t = 0; t < T; t++)
        for (int r = 0; r < R; r++) acc[t][r] = all(0.0f);
    int64_t i = 0;
    for (; i + Step::STEP <= k; i += Step::STEP) {
        decltype(Step::get(w)) wide[R];
        for (int r = 0; r < R; r++) wide[r] = Step::get(w + r * k + i);
        for (int r = 0; r < R; r++) __builtin_prefetch(w + (R + r) * k + i);  // the rows that come next
        for (int t = 0; t < T; t++) {
            const auto row = Step::get(x + t * x_stride + i);
            for (int r = 0; r < R; r++) acc[t][r] = Step::add(acc[t][r], row, wide[r]);
        }
    }
    if (i < k)
        for (int t = 0; t < T; t++)
            for (int r = 0; r < R; r++)
                acc[t][r] = Step::add(acc[t][r], Step::get_some(x + t * x_stride + i, int(k - i)),
                                      Step::get_some(w + r * k + i, int(k - i)));
    for (int t = 0; t < T; t++)
        for (int r = 0; r < R; r++) out[t * out_stride + r] = sum16(acc[t][r]);
}

// The same for any number of rows of w.
template <int T, class W>
INLINE void dots_of(const W *x, int64_t x_stride, const W *w, int64_t k, int64_t rows, float *out, int64_t out_stride) {
    constexpr int WIDE = T == 1 ? 8 : 4;
    int64_t r = 0;
    for (; r + WIDE <= rows; r += WIDE) dots<T, WIDE>(x, x_stride, w + r * k, k, out + r, out_stride);
    for (; r < rows; r++) dots<T, 1>(x, x_stride, w + r * k, k, out + r, out_stride);
}
