// The small ops between GEMMs: residual + RMS norm, gates, soft cap.
#include "layer.h"

#include <algorithm>

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

INLINE f32x16 silu(f32x16 x) { return x / (1.0f + exp16(-x)); }

// x times the sigmoid of 2u is x (1 + tanh u) / 2.
INLINE f32x16 gelu_tanh(f32x16 x) { return x / (1.0f + exp16(-1.5957691216f * (x + 0.044715f * x * x * x))); }

template <f32x16 (*ACT)(f32x16), class T> INLINE void gate_row(const T *gate, const T *up, T *out, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        const int count = int(n - i);
        store(out + i, ACT(load(gate + i, count)) * load(up + i, count), count);
    }
}

int useful(int threads, int64_t rows, int64_t n) { return rows > 1 && rows * n > SMALL ? threads : 1; }

template <class T>
void add_norm_call(float *residual, const void *delta, const Norm &norm, void *out, int64_t rows, int64_t n, int threads) {
    with_team(useful(threads, rows, n), [&](const Team &team) {
        add_norm(residual, static_cast<const T *>(delta), norm, static_cast<T *>(out), rows, n, team);
    });
}

template <class T> void norm_call(void *x, const Norm &norm, void *out, int64_t rows, int64_t n, int threads) {
    with_team(useful(threads, rows, n), [&](const Team &team) {
        norm_rows(static_cast<T *>(x), norm, static_cast<T *>(out), rows, n, team);
    });
}

template <class T> void gate_call(const void *gate_up, void *out, int64_t rows, int64_t n, bool is_gelu, int threads) {
    with_team(useful(threads, rows, n), [&](const Team &team) {
        gate(static_cast<const T *>(gate_up), static_cast<T *>(out), rows, n, is_gelu, team);
    });
}

}  // namespace

template <class T>
void add_norm(float *residual, const T *delta, const Norm &norm, T *out, int64_t rows, int64_t n, const Team &team) {
    team.split(rows, [&](int64_t i) {
        norm_row(residual + i * n, delta ? delta + i * n : nullptr, norm.weight, out + i * n, n, norm.eps);
    });
}

template <class T> void norm_rows(T *x, const Norm &norm, T *out, int64_t rows, int64_t n, const Team &team) {
    const T *none = nullptr;
    team.split(rows, [&](int64_t i) { norm_row(x + i * n, none, norm.weight, out + i * n, n, norm.eps); });
}

template <class T> void gate(const T *gate_up, T *out, int64_t rows, int64_t n, bool is_gelu, const Team &team) {
    team.split(rows, [&](int64_t i) {
        const T *left = gate_up + i * 2 * n;
        if (is_gelu) return gate_row<gelu_tanh>(left, left + n, out + i * n, n);
        gate_row<silu>(left, left + n, out + i * n, n);
    });
}

template void add_norm<bf16>(float *, const bf16 *, const Norm &, bf16 *, int64_t, int64_t, const Team &);
template void add_norm<float>(float *, const float *, const Norm &, float *, int64_t, int64_t, const Team &);
template void norm_rows<bf16>(bf16 *, const Norm &, bf16 *, int64_t, int64_t, const Team &);
template void norm_rows<float>(float *, const Norm &, float *, int64_t, int64_t, const Team &);
template void gate<bf16>(const bf16 *, bf16 *, int64_t, int64_t, bool, const Team &);
template void gate<float>(const float *, float *, int64_t, int64_t, bool, const Team &);

// residual: float32 [rows, n], += delta (may be null); out = RMS norm of it times weight. delta and out: one type.
extern "C" void veneer_add_norm(float *residual, const void *delta, const float *weight, void *out, int64_t rows,
                                int64_t n, float eps, int is_bf16, int threads) {
    (is_bf16 ? add_norm_call<bf16> : add_norm_call<float>)(residual, delta, {weight, eps}, out, rows, n, threads);
}

// out = RMS norm of x times weight, both [rows, n] of one type.
extern "C" void veneer_norm(void *x, const float *weight, void *out, int64_t rows, int64_t n, float eps, int is_bf16,
                            int threads) {
    (is_bf16 ? norm_call<bf16> : norm_call<float>)(x, {weight, eps}, out, rows, n, threads);
}

// gate_up: [rows, 2n], gate first; out: [rows, n].
extern "C" void veneer_gate(const void *gate_up, void *out, int64_t rows, int64_t n, int is_gelu, int is_bf16,
                            int threads) {
    (is_bf16 ? gate_call<bf16> : gate_call<float>)(gate_up, out, rows, n, is_gelu, threads);
}

// x = cap tanh(x / cap), in place.
extern "C" void veneer_soft_cap(float *x, int64_t rows, int64_t n, float cap, int threads) {
    with_team(useful(threads, rows, n), [&](const Team &team) {
        team.split(rows, [&](int64_t row) {
            for (int64_t i = 0; i < n; i += LANES) {
                float *at = x + row * n + i;
                store(at, soft_cap(load(at, int(n - i)), cap), int(n - i));
            }
        });
    });
}
