// From the fused q, k, v of a token to rotated q and to the K and V of its page.
//
//   q = R(p) norm(q),   K[p] = R(p) norm(k),   V[p] = v;   norm where the model has one per head
//
// R turns the first 2 * half elements of a head by the angles of position p, the i-th with the (half + i)-th.
#include "store.h"

#include <algorithm>

namespace {

constexpr int64_t SMALL = 16384;  // elements below which waking a second thread costs more than it gives
constexpr int MAX_DIM = 256;
constexpr float E3M4_MAX = 31.0f;

// Nearest e3m4, ties to even, |value| <= 31. Below 2^-2 the numbers are multiples of 2^-6, rounded by adding 2^17.
INLINE uint8_t encode(float value) {
    const uint32_t bits = bits_as<uint32_t>(value), magnitude = bits & 0x7fffffff;
    const uint32_t normal = ((magnitude + 0x3ffff + ((magnitude >> 19) & 1)) >> 19) - (124 << 4);
    const uint32_t small = bits_as<uint32_t>(bits_as<float>(magnitude) + 131072.0f) - bits_as<uint32_t>(131072.0f);
    return uint8_t((magnitude < 0x3e800000 ? small : normal) | ((bits >> 24) & 0x80));
}

struct Head {
    void *to;
    int64_t stride;
    float *scale;  // of e3m4 pages
};

template <class T> INLINE void put_plain(const float *x, int64_t dim, const Head &head) {
    for (int64_t d = 0; d < dim; d++) static_cast<T *>(head.to)[d * head.stride] = from_float<T>(x[d]);
}

void put_codes(const float *x, int64_t dim, const Head &head) {
    float top = 0.0f;
    for (int64_t d = 0; d < dim; d++) {
        const float magnitude = std::fabs(x[d]);
        top = magnitude > top || magnitude != magnitude ? magnitude : top;
    }
    const float scale = top / E3M4_MAX;
    *head.scale = scale;
    uint8_t *to = static_cast<uint8_t *>(head.to), codes[MAX_DIM];
    for (int64_t d = 0; d < dim; d++) {
        float value = scale > 0.0f ? x[d] / scale : 0.0f;
        value = value > E3M4_MAX ? E3M4_MAX : value < -E3M4_MAX ? -E3M4_MAX : value;
        codes[d] = encode(value);
    }
    for (int64_t d = 0; d < dim; d++) to[d * head.stride] = codes[d];
}

void put(const float *x, int64_t dim, PageKind kind, const Head &head) {
    if (kind == E3M4) return put_codes(x, dim, head);
    if (kind == BF16) return put_plain<bf16>(x, dim, head);
    put_plain<float>(x, dim, head);
}

void put_head(const float *k_row, const float *v_row, const Pages &p, int64_t page, int64_t head, int64_t at) {
    const int64_t plane = page * p.kv_heads + head, size = p.kind == E3M4 ? 1 : p.kind == BF16 ? 2 : 4;
    char *k_to = static_cast<char *>(p.k) + (plane * p.dim * p.page_size + at) * size;
    char *v_to = static_cast<char *>(p.v) + (plane * p.page_size + at) * p.dim * size;
    put(k_row, p.dim, p.kind, {k_to, p.page_size, p.k_scale ? p.k_scale + plane * p.page_size + at : nullptr});
    put(v_row, p.dim, p.kind, {v_to, 1, p.v_scale ? p.v_scale + plane * p.page_size + at : nullptr});
}

// What is done to a head of q or k on its way. norm: float32 [dim] or null.
struct Turn {
    const float *norm;
    float eps;
    const float *cos, *sin;
    int64_t half;
};

INLINE void normalise(float *x, const float *weight, float eps, int64_t dim) {
    f32x16 squares = all(0.0f);
    for (int64_t d = 0; d < dim; d += LANES) {
        const f32x16 value = load(x + d, int(dim - d));
        squares += value * value;
    }
    const float inverse = 1.0f / std::sqrt(sum16(squares) / float(dim) + eps);
    for (int64_t d = 0; d < dim; d++) x[d] = x[d] * inverse * weight[d];
}

INLINE void rotate(float *x, const float *cos, const float *sin, int64_t half) {
    for (int64_t i = 0; i < half; i++) {
        const float a = x[i], b = x[i + half];
        x[i] = a * cos[i] - b * sin[i];
        x[i + half] = b * cos[i] + a * sin[i];
    }
}

template <class T> INLINE void turn_head(const T *from, int64_t dim, const Turn &turn, float *x) {
    for (int64_t d = 0; d < dim; d++) x[d] = to_float(from[d]);
    if (turn.norm) normalise(x, turn.norm, turn.eps, dim);
    rotate(x, turn.cos, turn.sin, turn.half);
}

template <class T>
void store_token(const T *qkv, const Turn &q_turn, const Turn &k_turn, float *q, int64_t q_heads, const Pages &pages,
                 int64_t page, int64_t at) {
    const int64_t dim = pages.dim;
    for (int64_t h = 0; h < q_heads; h++) turn_head(qkv + h * dim, dim, q_turn, q + h * dim);
    const T *k = qkv + q_heads * dim, *v = k + pages.kv_heads * dim;
    for (int64_t h = 0; h < pages.kv_heads; h++) {
        float k_row[MAX_DIM], v_row[MAX_DIM];
        turn_head(k + h * dim, dim, k_turn, k_row);
        for (int64_t d = 0; d < dim; d++) v_row[d] = to_float(v[h * dim + d]);
        put_head(k_row, v_row, pages, page, h, at);
    }
}

}  // namespace

template <class T>
void rope_and_store(const T *qkv, const Rotary &r, float *q, int64_t q_heads, const Pages &pages, const Batch &batch,
                    const Team &team) {
    const int64_t width = (q_heads + 2 * pages.kv_heads) * pages.dim;
    team.split(batch.tokens, [&](int64_t t) {
        const int64_t position = batch.positions[t], row = batch.angles[t] * r.half;
        const int64_t page = batch.page_table[batch.run_of[t] * batch.table_width + position / pages.page_size];
        const Turn k{r.k_norm, r.eps, r.cos + row, r.sin + row, r.half};
        Turn of_q = k;
        of_q.norm = r.q_norm;
        store_token(qkv + t * width, of_q, k, q + t * q_heads * pages.dim, q_heads, pages, page,
                    position % pages.page_size);
    });
}

template void rope_and_store<bf16>(const bf16 *, const Rotary &, float *, int64_t, const Pages &, const Batch &,
                                   const Team &);
template void rope_and_store<float>(const float *, const Rotary &, float *, int64_t, const Pages &, const Batch &,
                                    const Team &);

// qkv: [tokens, (q_heads + 2 kv_heads) dim]; cos, sin: [rows, half]; q_norm, k_norm: float32 [dim] or both null.
// q: float32 [tokens, q_heads, dim]. k and v go to their pages, of the kind that paging.h numbers.
extern "C" void veneer_rope_and_store(const void *qkv, const float *cos, const float *sin, const float *q_norm,
                                      const float *k_norm, float *q, void *k, void *v, float *k_scale, float *v_scale,
                                      const int32_t *positions, const int32_t *angles, const int32_t *run_of,
                                      const int32_t *page_table, int64_t table_width, int64_t half, int64_t tokens,
                                      int64_t q_heads, int64_t kv_heads, int64_t dim, int64_t page_size, float eps,
                                      int kind, int is_bf16, int threads) {
    const Pages pages{k, v, k_scale, v_scale, kv_heads, dim, page_size, PageKind(kind)};
    const Batch batch{positions, angles, run_of, nullptr, page_table, 0, table_width, tokens};
    const Rotary rotary{cos, sin, q_norm, k_norm, half, eps};
    const int64_t width = (q_heads + 2 * kv_heads) * dim;
    with_team(tokens > 1 && tokens * width > SMALL ? threads : 1, [&](const Team &team) {
        if (is_bf16) return rope_and_store(static_cast<const bf16 *>(qkv), rotary, q, q_heads, pages, batch, team);
        rope_and_store(static_cast<const float *>(qkv), rotary, q, q_heads, pages, batch, team);
    });
}
