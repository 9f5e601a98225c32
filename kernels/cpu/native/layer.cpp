// The small ops between GEMMs: residual + RMS norm, SiLU gate, rotary positions with the store to pages.
#include <algorithm>

#include "vec.h"

namespace {

constexpr int64_t SMALL = 16384;  // elements below which waking a second thread costs more than it gives
constexpr int MAX_DIM = 256;
constexpr float E4M3_MAX = 448.0f;

template <class T> void add_norm_row(float *residual, const T *delta, const T *weight, T *out, int64_t n, float eps) {
    f32x16 squares = all(0.0f);
    for (int64_t i = 0; i < n; i += LANES) {
        const int count = int(n - i);
        f32x16 x = load(residual + i, count);
        if (delta) store(residual + i, x += load(delta + i, count), count);
        squares += x * x;
    }
    const float inverse = 1.0f / std::sqrt(sum16(squares) / float(n) + eps);
    for (int64_t i = 0; i < n; i += LANES) {
        const int count = int(n - i);
        store(out + i, load(residual + i, count) * inverse * load(weight + i, count), count);
    }
}

template <class T>
void add_norm(float *residual, const void *delta, const void *weight, void *out, int64_t rows, int64_t n, float eps,
              int threads) {
#pragma omp parallel for num_threads(threads) if (rows > 1 && rows * n > SMALL)
    for (int64_t i = 0; i < rows; i++)
        add_norm_row(residual + i * n, delta ? static_cast<const T *>(delta) + i * n : nullptr,
                     static_cast<const T *>(weight), static_cast<T *>(out) + i * n, n, eps);
}

template <class T> void silu_mul(const void *gate_up, void *out, int64_t rows, int64_t n, int threads) {
#pragma omp parallel for num_threads(threads) if (rows > 1 && rows * n > SMALL)
    for (int64_t row = 0; row < rows; row++) {
        const T *gate = static_cast<const T *>(gate_up) + row * 2 * n, *up = gate + n;
        for (int64_t i = 0; i < n; i += LANES) {
            const int count = int(n - i);
            f32x16 x = load(gate + i, count);
            store(static_cast<T *>(out) + row * n + i, x / (1.0f + exp16(-x)) * load(up + i, count), count);
        }
    }
}

// Nearest e4m3, ties to even, |value| <= 448. Below 2^-6 the numbers are multiples of 2^-9, rounded by adding 2^14.
INLINE uint8_t encode(float value) {
    const uint32_t bits = bits_as<uint32_t>(value), magnitude = bits & 0x7fffffff;
    const uint32_t normal = ((magnitude + 0x7ffff + ((magnitude >> 20) & 1)) >> 20) - (120 << 3);
    const uint32_t small = bits_as<uint32_t>(bits_as<float>(magnitude) + 16384.0f) - bits_as<uint32_t>(16384.0f);
    return uint8_t((magnitude < 0x3c800000 ? small : normal) | ((bits >> 24) & 0x80));
}

struct Head {
    void *to;
    int64_t stride;
    float *scale;  // null for float32 pages
};

void put(const float *x, int64_t dim, const Head &head) {
    if (!head.scale) {
        float *to = static_cast<float *>(head.to);
        for (int64_t d = 0; d < dim; d++) to[d * head.stride] = x[d];
        return;
    }
    float top = 0.0f;
    for (int64_t d = 0; d < dim; d++) {
        const float magnitude = std::fabs(x[d]);
        top = magnitude > top || magnitude != magnitude ? magnitude : top;
    }
    const float scale = top / E4M3_MAX;
    *head.scale = scale;
    uint8_t *to = static_cast<uint8_t *>(head.to), codes[MAX_DIM];
    for (int64_t d = 0; d < dim; d++) {
        float value = scale > 0.0f ? x[d] / scale : 0.0f;
        value = value > E4M3_MAX ? E4M3_MAX : value < -E4M3_MAX ? -E4M3_MAX : value;
        codes[d] = encode(value);
    }
    for (int64_t d = 0; d < dim; d++) to[d * head.stride] = codes[d];
}

template <class T> INLINE void rotate(const T *x, const float *cos, const float *sin, int64_t half, float *out) {
    for (int64_t i = 0; i < half; i++) {
        const float a = to_float(x[i]), b = to_float(x[i + half]);
        out[i] = a * cos[i] - b * sin[i];
        out[i + half] = b * cos[i] + a * sin[i];
    }
}

struct Store {
    void *k, *v;
    float *k_scale, *v_scale;
    int64_t kv_heads, dim, page_size;

    void put_head(const float *k_row, const float *v_row, int64_t page, int64_t head, int64_t at) const {
        const int64_t plane = page * kv_heads + head, size = k_scale ? 1 : sizeof(float);
        char *k_to = static_cast<char *>(k) + (plane * dim * page_size + at) * size;
        char *v_to = static_cast<char *>(v) + (plane * page_size + at) * dim * size;
        put(k_row, dim, {k_to, page_size, k_scale ? k_scale + plane * page_size + at : nullptr});
        put(v_row, dim, {v_to, 1, v_scale ? v_scale + plane * page_size + at : nullptr});
    }
};

struct Places {
    const int32_t *positions, *run_of, *page_table;
    int64_t table_width;
};

template <class T>
void rope_token(const T *qkv, const float *cos, const float *sin, float *q, int64_t q_heads, const Store &store,
                int64_t page, int64_t at) {
    const int64_t dim = store.dim;
    for (int64_t h = 0; h < q_heads; h++) rotate(qkv + h * dim, cos, sin, dim / 2, q + h * dim);
    const T *k = qkv + q_heads * dim, *v = k + store.kv_heads * dim;
    for (int64_t h = 0; h < store.kv_heads; h++) {
        float k_row[MAX_DIM], v_row[MAX_DIM];
        rotate(k + h * dim, cos, sin, dim / 2, k_row);
        for (int64_t d = 0; d < dim; d++) v_row[d] = to_float(v[h * dim + d]);
        store.put_head(k_row, v_row, page, h, at);
    }
}

template <class T>
void rope_all(const void *qkv, const float *cos, const float *sin, float *q, int64_t tokens, int64_t q_heads,
              const Store &store, const Places &places, int threads) {
    const int64_t width = (q_heads + 2 * store.kv_heads) * store.dim;
#pragma omp parallel for num_threads(threads) if (tokens > 1 && tokens * width > SMALL)
    for (int64_t t = 0; t < tokens; t++) {
        const int64_t position = places.positions[t], half = store.dim / 2;
        const int64_t page = places.page_table[places.run_of[t] * places.table_width + position / store.page_size];
        rope_token(static_cast<const T *>(qkv) + t * width, cos + position * half, sin + position * half,
                   q + t * q_heads * store.dim, q_heads, store, page, position % store.page_size);
    }
}

}  // namespace

// residual: float32 [rows, n], += delta (may be null); out = RMS norm of it times weight. delta, weight, out: one type.
extern "C" void veneer_add_norm(float *residual, const void *delta, const void *weight, void *out, int64_t rows,
                                int64_t n, float eps, int is_bf16, int threads) {
    (is_bf16 ? add_norm<bf16> : add_norm<float>)(residual, delta, weight, out, rows, n, eps, threads);
}

// gate_up: [rows, 2n], gate first; out: [rows, n].
extern "C" void veneer_silu_mul(const void *gate_up, void *out, int64_t rows, int64_t n, int is_bf16, int threads) {
    (is_bf16 ? silu_mul<bf16> : silu_mul<float>)(gate_up, out, rows, n, threads);
}

// qkv: [tokens, (q_heads + 2 kv_heads) dim]; q: float32 [tokens, q_heads, dim]. k and v go to their pages.
extern "C" void veneer_rope_and_store(const void *qkv, const float *cos, const float *sin, float *q, void *k, void *v,
                                      float *k_scale, float *v_scale, const int32_t *positions, const int32_t *run_of,
                                      const int32_t *page_table, int64_t table_width, int64_t tokens, int64_t q_heads,
                                      int64_t kv_heads, int64_t dim, int64_t page_size, int is_bf16, int threads) {
    const Store store{k, v, k_scale, v_scale, kv_heads, dim, page_size};
    const Places places{positions, run_of, page_table, table_width};
    (is_bf16 ? rope_all<bf16> : rope_all<float>)(qkv, cos, sin, q, tokens, q_heads, store, places, threads);
}
