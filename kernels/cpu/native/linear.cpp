// y = x W^T + b with sums whose order depends on the number of inputs alone: a row's result is the same in any batch.
#include <algorithm>
#include <vector>

#include "dot.h"

namespace {

constexpr int TILE = 6;
constexpr int64_t BLOCK = 48;  // rows of W that stay in the second cache level while the tokens pass by

template <int T, class W>
void block(const float *x, const W *w, float *y, int64_t in, int64_t rows, int64_t y_stride) {
    dots_of<T>(x, in, w, in, rows, y, y_stride);
}

template <class W>
void columns(const float *x, const W *w, float *y, int64_t tokens, int64_t in, int64_t rows, int64_t y_stride) {
    int64_t t = 0;
    for (; t + TILE <= tokens; t += TILE) block<TILE>(x + t * in, w, y + t * y_stride, in, rows, y_stride);
    for (; t < tokens; t++) block<1>(x + t * in, w, y + t * y_stride, in, rows, y_stride);
}

template <class W>
void linear(const W *x, const W *w, const W *b, W *y, int64_t tokens, int64_t in, int64_t out, int threads) {
    std::vector<float> wide(tokens * in);
    for (int64_t i = 0; i < tokens * in; i++) wide[i] = to_float(x[i]);
#pragma omp parallel num_threads(threads)
    {
        std::vector<float> part(tokens * BLOCK);
#pragma omp for schedule(static)
        for (int64_t first = 0; first < out; first += BLOCK) {
            const int64_t rows = std::min(BLOCK, out - first);
            columns(wide.data(), w + first * in, part.data(), tokens, in, rows, BLOCK);
            for (int64_t t = 0; t < tokens; t++)
                for (int64_t r = 0; r < rows; r++) {
                    const float sum = part[t * BLOCK + r];
                    y[t * out + first + r] = from_float<W>(b ? sum + to_float(b[first + r]) : sum);
                }
        }
    }
}

template <class W>
void start(const void *x, const void *w, const void *b, void *y, int64_t tokens, int64_t in, int64_t out, int threads) {
    linear(static_cast<const W *>(x), static_cast<const W *>(w), static_cast<const W *>(b), static_cast<W *>(y), tokens,
           in, out, threads);
}

}  // namespace

// x: [tokens, in], w: [out, in], b: [out] or null, y: [tokens, out]; all bf16 or all float32; sums in float32.
extern "C" void veneer_linear(const void *x, const void *w, const void *b, void *y, int64_t tokens, int64_t in,
                              int64_t out, int is_bf16, int threads) {
    (is_bf16 ? start<bf16> : start<float>)(x, w, b, y, tokens, in, out, threads);
}
