// The small ops between GEMMs: residual + RMS norm, gates, soft cap.
#include <algorithm>

#include "vec.h"

namespace {

constexpr int64_t SMALL = 16384;  // elements below which waking a second thread costs more than it gives

// out = RMS norm of x times weight, after x += delta in place where there is a delta.
template <class X, class T>
void norm_row(X *x, const T *delta, const float *weight, T *out, int64_t n, float eps) {
    f32x16 squares = all(0.0f);
    for (int64_t i = 0; i < n; i += LANES) {
        const int count = int(n - i);
        f32x16 value = load(x + i, count);
        if (delta) store(x + i, value += load(delta + i, count), count);
        squares += value * value;
    }
    const float inverse = 1.0f / std::sqrt(sum16(squares) / float(n) + eps);
    for (int64_t i = 0; i < n; i += LANES) {
        const int count = int(n - i);
        store(out + i, load(x + i, count) * inverse * load(weight + i, count), count);
    }
}

template <class X, class T>
void norm(void *x, const void *delta, const float *weight, void *out, int64_t rows, int64_t n, float eps, int threads) {
#pragma omp parallel for num_threads(threads) if (rows > 1 && rows * n > SMALL)
    for (int64_t i = 0; i < rows; i++)
        norm_row(static_cast<X *>(x) + i * n, delta ? static_cast<const T *>(delta) + i * n : nullptr, weight,
                 static_cast<T *>(out) + i * n, n, eps);
}

INLINE f32x16 silu(f32x16 x) { return x / (1.0f + exp16(-x)); }

// x times the sigmoid of 2u is x (1 + tanh u) / 2.
INLINE f32x16 gelu_tanh(f32x16 x) { return x / (1.0f + exp16(-1.5957691216f * (x + 0.044715f * x * x * x))); }

template <class T, f32x16 (*ACT)(f32x16)> void gate(const void *gate_up, void *out, int64_t rows, int64_t n, int threads) {
#pragma omp parallel for num_threads(threads) if (rows > 1 && rows * n > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const T *left = static_cast<const T *>(gate_up) + row * 2 * n, *up = left + n;
        for (int64_t i = 0; i < n; i += LANES) {
            const int count = int(n - i);
            store(static_cast<T *>(out) + row * n + i, ACT(load(left + i, count)) * load(up + i, count), count);
        }
    }
}

}  // namespace

// residual: float32 [rows, n], += delta (may be null); out = RMS norm of it times weight. delta and out: one type.
extern "C" void veneer_add_norm(float *residual, const void *delta, const float *weight, void *out, int64_t rows,
                                int64_t n, float eps, int is_bf16, int threads) {
    (is_bf16 ? norm<float, bf16> : norm<float, float>)(residual, delta, weight, out, rows, n, eps, threads);
}

// out = RMS norm of x times weight, both [rows, n] of one type.
extern "C" void veneer_norm(void *x, const float *weight, void *out, int64_t rows, int64_t n, float eps, int is_bf16,
                            int threads) {
    (is_bf16 ? norm<bf16, bf16> : norm<float, float>)(x, nullptr, weight, out, rows, n, eps, threads);
}

// gate_up: [rows, 2n], gate first; out: [rows, n].
extern "C" void veneer_gate(const void *gate_up, void *out, int64_t rows, int64_t n, int is_gelu, int is_bf16,
                            int threads) {
    if (is_gelu) return (is_bf16 ? gate<bf16, gelu_tanh> : gate<float, gelu_tanh>)(gate_up, out, rows, n, threads);
    (is_bf16 ? gate<bf16, silu> : gate<float, silu>)(gate_up, out, rows, n, threads);
}

// x = cap tanh(x / cap), in place.
extern "C" void veneer_soft_cap(float *x, int64_t rows, int64_t n, float cap, int threads) {
#pragma omp parallel for num_threads(threads) if (rows > 1 && rows * n > SMALL)
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < n; i += LANES) {
            float *at = x + row * n + i;
            store(at, soft_cap(load(at, int(n - i)), cap), int(n - i));
        }
}
