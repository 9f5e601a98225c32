// Attention as attention.cpp defines it, with q, the decoded pages and the softmax's weights as bf16 pairs: e3m4 codes
// are exact in bf16, q and weights are rounded to it, sums are float32.
//
// Keys are decoded once for all rows of a task, TILE at a time. Tiles begin at multiples of TILE, so what a row adds
// together depends on its position alone; a key that it does not see adds a zero. The scores are in powers of two.
#include "attention_pairs.h"

#ifdef __AVX512BF16__

namespace {

constexpr int MAX_DIM = 256;
constexpr int MAX_ROWS = 96;
constexpr int TILE = 64, GROUPS = TILE / LANES;
constexpr int ROWS = 4;  // multiplied together
constexpr float NEVER = -INFINITY, LOG2E = 1.44269504f;

// Matrices of a task, their rows one after the other: [.., dim] where not said.
struct alignas(ALIGN) Scratch {
    uint32_t k[MAX_DIM / 2 * TILE];  // [dim / 2, TILE], pairs of dimensions
    uint32_t v[TILE / 2 * MAX_DIM];  // [TILE / 2, dim], pairs of keys
    bf16 q[MAX_ROWS * MAX_DIM];
    float out[MAX_ROWS * MAX_DIM];
    bf16 weight[ROWS][TILE];
    float k_scale[TILE], v_scale[TILE];
    float total[MAX_ROWS][LANES], best[MAX_ROWS];
    int from[MAX_ROWS], seen[MAX_ROWS];  // a row sees keys [from, seen)
};

// Keys [first, end) of the tile that begins at position base; whole groups but for the end of a run.
struct Span {
    int base, first, end;

    bool is_whole() const { return first == 0 && end == TILE; }
};

// low and high, both exact in bf16, as pairs.
INLINE u32x16 pairs_of(f32x16 low, f32x16 high) {
    return (bits_as<u32x16>(low) >> 16) | (bits_as<u32x16>(high) & 0xffff0000);
}

// Sixteen keys, of which `width` are there.
template <class P>
void decode_group(Scratch &s, int64_t dim, int64_t page_size, const P *k, const P *v, int at, int width) {
    for (int64_t d = 0; d < dim; d += 2) {
        const u32x16 pairs = pairs_of(load(k + d * page_size, width), load(k + (d + 1) * page_size, width));
        std::memcpy(s.k + d / 2 * TILE + at, &pairs, sizeof pairs);
    }
    for (int j = 0; j < width; j += 2)
        for (int64_t d = 0; d < dim; d += LANES) {
            const f32x16 next = j + 1 < width ? load16(v + (j + 1) * dim + d) : all(0.0f);
            const u32x16 pairs = pairs_of(load16(v + j * dim + d), next);
            std::memcpy(s.v + (at + j) / 2 * dim + d, &pairs, sizeof pairs);
        }
}

template <class P>
void decode(Scratch &s, const Geometry &g, const Planes<P> &planes, const int32_t *table, int kv_head,
            const Span &span) {
    for (int at = span.first; at < span.end; at += LANES) {
        const int position = span.base + at, width = std::min(LANES, span.end - at);
        const int64_t within = position % g.page_size;
        const int64_t head = int64_t(table[position / g.page_size]) * g.pages.kv_heads + kv_head;
        f32x16 k_scale = all(g.rule.scale), v_scale = all(1.0f);
        if (planes.k_scale) {
            k_scale *= E3M4_UNIT * load(planes.k_scale + head * g.page_size + within, width);
            v_scale = E3M4_UNIT * load(planes.v_scale + head * g.page_size + within, width);
        }
        store16(s.k_scale + at, g.rule.cap > 0.0f ? k_scale : k_scale * LOG2E);
        store16(s.v_scale + at, v_scale);
        decode_group(s, g.dim, g.page_size, planes.k + head * g.dim * g.page_size + within,
                     planes.v + (head * g.page_size + within) * g.dim, at, width);
    }
}

// sums[r][c] = the pairs [first, end) of row r of a times columns c of b.
template <int R, int C>
INLINE void multiply(const bf16 *a, int64_t a_stride, const uint32_t *b, int64_t b_stride, int first, int end,
                     f32x16 (*sums)[C]) {
    __m512 acc[R][C];
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) acc[r][c] = _mm512_setzero_ps();
    for (int i = first; i < end; i++) {
        __m512i wide[C];
        for (int c = 0; c < C; c++) wide[c] = _mm512_loadu_si512(b + i * b_stride + c * LANES);
        for (int r = 0; r < R; r++) {
            int pair;
            std::memcpy(&pair, a + r * a_stride + 2 * i, sizeof pair);
            const __m512bh row = (__m512bh)_mm512_set1_epi32(pair);
            for (int c = 0; c < C; c++) acc[r][c] = _mm512_dpbf16_ps(acc[r][c], row, (__m512bh)wide[c]);
        }
    }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) sums[r][c] = (f32x16)acc[r][c];
}

// 2^x for x <= 0, to a few ulp; NaN stays NaN.
INLINE f32x16 exp2_16(f32x16 x) {
    x = (f32x16)_mm512_max_ps(_mm512_set1_ps(-200.0f), (__m512)x);
    const f32x16 n = (f32x16)_mm512_roundscale_ps((__m512)x, 0), r = x - n;
    f32x16 p = all(1.5403530e-4f);
    p = p * r + 1.3333558e-3f;
    p = p * r + 9.6181291e-3f;
    p = p * r + 5.5504109e-2f;
    p = p * r + 2.4022651e-1f;
    p = p * r + 6.9314718e-1f;
    p = p * r + 1.0f;
    return (f32x16)_mm512_scalef_ps((__m512)p, (__m512)n);
}

// Folds a tile's scores of one row into its running softmax, leaves its weights in s.weight[r], and returns what the
// row's sums shrink by. MASKED: the row sees only keys [first, end) of the tile. One that has seen nothing yet keeps
// its maximum at minus infinity.
template <bool MASKED>
float fold(Scratch &s, const Rule &rule, int row, int r, f32x16 *score, int first, int end) {
    const i32x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    i32x16 sees[GROUPS];
    __m512 top = _mm512_set1_ps(NEVER);
    for (int c = 0; c < GROUPS; c++) {
        score[c] *= load16(s.k_scale + c * LANES);
        if (rule.cap > 0.0f) score[c] = soft_cap(score[c], rule.cap) * LOG2E;
        if (MASKED) {
            sees[c] = (lane + c * LANES >= first) & (lane + c * LANES < end);
            score[c] = sees[c] ? score[c] : all(NEVER);
        }
        top = _mm512_max_ps((__m512)score[c], top);
    }
    const float before = s.best[row], tops = max16((f32x16)top), best = tops > before ? tops : before;
    const float shrink = best == before ? 1.0f : exp2_16(all(before - best))[0];
    f32x16 weight[GROUPS];
    for (int c = 0; c < GROUPS; c++) {
        weight[c] = exp2_16(score[c] - best);
        f32x16 scaled = weight[c] * load16(s.v_scale + c * LANES);
        if (MASKED) weight[c] = sees[c] ? weight[c] : all(0.0f), scaled = sees[c] ? scaled : all(0.0f);
        const __m256bh narrow = _mm512_cvtneps_pbh((__m512)scaled);
        std::memcpy(s.weight[r] + c * LANES, &narrow, sizeof narrow);
    }
    store16(s.total[row], load16(s.total[row]) * shrink + ((weight[0] + weight[1]) + (weight[2] + weight[3])));
    s.best[row] = best;
    return shrink;
}

template <int R> INLINE void scores(const Scratch &s, int64_t dim, int row, const Span &span, f32x16 (*score)[GROUPS]) {
    const bf16 *q = s.q + row * dim;
    if (span.is_whole()) return multiply<R, GROUPS>(q, dim, s.k, TILE, 0, int(dim / 2), score);
    for (int c = span.first / LANES; c * LANES < span.end; c++) {
        f32x16 one[R][1];
        multiply<R, 1>(q, dim, s.k + c * LANES, TILE, 0, int(dim / 2), one);
        for (int r = 0; r < R; r++) score[r][c] = one[r][0];
    }
}

template <int R, int C>
INLINE void mix(Scratch &s, int64_t dim, int row, int64_t d, int first, int end, const float *shrink) {
    f32x16 part[R][C];
    multiply<R, C>(s.weight[0], TILE, s.v + d, dim, first / 2, (end + 1) / 2, part);
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) {
            float *out = s.out + (row + r) * dim + d + c * LANES;
            store16(out, load16(out) * shrink[r] + part[r][c]);
        }
}

template <int R> void rows_of_tile(Scratch &s, const Geometry &g, int row, const Span &span) {
    f32x16 score[R][GROUPS] = {};
    float shrink[R];
    scores<R>(s, g.dim, row, span, score);
    for (int r = 0; r < R; r++) {
        const int first = std::max(s.from[row + r] - span.base, span.first);
        const int end = std::min(s.seen[row + r] - span.base, span.end);
        shrink[r] = (first == 0 && end == TILE ? fold<false> : fold<true>)(s, g.rule, row + r, r, score[r], first, end);
    }
    const int end = std::min(s.seen[row + R - 1] - span.base, span.end);
    int64_t d = 0;
    for (; d + 4 * LANES <= g.dim; d += 4 * LANES) mix<R, 4>(s, g.dim, row, d, span.first, end, shrink);
    for (; d < g.dim; d += LANES) mix<R, 1>(s, g.dim, row, d, span.first, end, shrink);
}

void tile(Scratch &s, const Geometry &g, int rows, const Span &span) {
    // Rows are in token order: those that do not see this tile yet come first, those whose window has left it last.
    int row = 0;
    while (row < rows && s.seen[row] <= span.base) row++;
    while (rows > row && s.from[rows - 1] >= span.base + span.end) rows--;
    for (; row + ROWS <= rows; row += ROWS) rows_of_tile<ROWS>(s, g, row, span);
    switch (rows - row) {
        case 3: return rows_of_tile<3>(s, g, row, span);
        case 2: return rows_of_tile<2>(s, g, row, span);
        case 1: return rows_of_tile<1>(s, g, row, span);
    }
}

int start(Scratch &s, const Geometry &g, const float *q, const Task &task) {
    const int64_t group = g.group();
    int row = 0;
    for (int t = task.first; t < task.first + task.count; t++)
        for (int64_t h = 0; h < group; h++, row++) {
            const float *from = q + (t * g.q_heads + task.kv_head * group + h) * g.dim;
            for (int64_t d = 0; d < g.dim; d += LANES) store16(s.q + row * g.dim + d, load16(from + d));
            std::fill_n(s.out + row * g.dim, g.dim, 0.0f);
            store16(s.total[row], all(0.0f));
            s.best[row] = NEVER, s.from[row] = g.from(t), s.seen[row] = g.batch.positions[t] + 1;
        }
    return row;
}

template <class P>
void attend(Scratch &s, const Geometry &g, const Planes<P> &planes, const float *q, bf16 *out, const Task &task) {
    const int64_t group = g.group();
    const int rows = start(s, g, q, task), length = s.seen[rows - 1], from = s.from[0];
    const int32_t *table = g.batch.page_table + task.run * g.batch.table_width;
    for (int base = from / TILE * TILE; base < length; base += TILE) {
        // What no row sees may be a page of nobody.
        const Span span{base, std::max(0, (from - base) / LANES * LANES), std::min(TILE, length - base)};
        decode(s, g, planes, table, task.kv_head, span);
        tile(s, g, rows, span);
    }
    for (int row = 0; row < rows; row++) {
        const int64_t t = task.first + row / group, h = task.kv_head * group + row % group;
        const float total = sum16(load16(s.total[row]));
        for (int64_t d = 0; d < g.dim; d += LANES)
            store16(out + (t * g.q_heads + h) * g.dim + d, load16(s.out + row * g.dim + d) / total);
    }
}

template <class P> void attend_all(const Geometry &g, const float *q, bf16 *out, const Team &team) {
    const Planes<P> planes(g.pages);
    Scratch scratch;
    share_tasks(g, MAX_ROWS, team, [&](const Task &task) { attend(scratch, g, planes, q, out, task); });
}

}  // namespace

bool has_attention_pairs(const Geometry &g) {
    return g.pages.kind != FLOAT32 && g.dim % LANES == 0 && g.page_size % LANES == 0 && g.group() <= MAX_ROWS;
}

void attention_pairs(const Geometry &g, const float *q, bf16 *out, const Team &team) {
    (g.pages.kind == E3M4 ? attend_all<e3m4> : attend_all<bf16>)(g, q, out, team);
}

#else

bool has_attention_pairs(const Geometry &) { return false; }
void attention_pairs(const Geometry &, const float *, bf16 *, const Team &) {}

#endif
